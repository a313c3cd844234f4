// SPDX-License-Identifier: GPL-2.0-only
// Processes that use open files. Every message tells who wrote it, how many he
// wrote before, and its length; the rest of its bytes follows from that.
#include <cstring>

#include "storm.h"

namespace sim
{

namespace
{

struct Header {
	uint32_t magic, writer, number, length;
	uint64_t end; /* device node that it was written to */
};
constexpr uint32_t message_magic = 0x4d534721;

uint64_t word(const Header &h, std::size_t at)
{
	return (h.writer * 0x9e3779b97f4a7c15ULL) ^ (h.number * 0xbf58476d1ce4e5b9ULL) ^ at;
}

void fill(std::string &text, const Header &h)
{
	std::memcpy(text.data(), &h, sizeof(h));
	std::size_t at = sizeof(h);

	for (; at + 8 <= text.size(); at += 8) {
		uint64_t value = word(h, at);

		std::memcpy(text.data() + at, &value, 8);
	}
	for (; at < text.size(); at++)
		text[at] = static_cast<char>(word(h, at));
}

bool intact(std::string_view text, const Header &h)
{
	std::size_t at = sizeof(h);

	for (; at + 8 <= text.size(); at += 8) {
		uint64_t value;

		std::memcpy(&value, text.data() + at, 8);
		if (value != word(h, at))
			return false;
	}
	for (; at < text.size(); at++)
		if (text[at] != static_cast<char>(word(h, at)))
			return false;
	return true;
}

} // namespace

File Schedule::open(Machine &m, const std::string &name, uint64_t &end)
{
	int err = 0;

	end = 0;
	for (const auto &devnode : w->devnodes)
		if (devnode->node == m.node && devnode->name == name && !devnode->going)
			end = devnode->id;
	if (!end)
		return {};
	File file = w->open(name, &err, m.node);
	/* another of this name may have taken its place before the open came to it */
	DevNode *now = w->devnodes.find(end);
	if (file && (!now || now->name != name)) {
		file.close();
		return {};
	}
	return file;
}

/* False: this process writes no more. */
bool Schedule::write_one(File &file, uint64_t end, uint32_t writer, uint32_t number, Rng &rng)
{
	static constexpr std::size_t sizes[] = {300, 1200, 5000, 20000};
	std::size_t most = rng.chance(60) ? 300 : sizes[rng.below(many ? 4 : 3)];
	std::size_t size = rng.range(sizeof(Header), most);
	Header header{message_magic, writer, number, static_cast<uint32_t>(size), end};
	std::string text(size, '\0');
	fill(text, header);
	kd_iter iter = source_of(text);
	uint32_t flags = rng.chance(15) ? uint32_t{KD_IO_NOWAIT} : 0;

	bool by_desc = rng.chance(20);

	if (rng.chance(15))
		flags |= KD_IO_POLL;
	if (rng.chance(20))
		iter.user = false;
	if (rng.chance(10)) {
		std::size_t cut = rng.below(size);

		iter.segments = {{iter.segments[0].base, cut},
				 {iter.segments[0].base + cut, size - cut}};
	}
	if (!faultless && !by_desc && rng.chance(2)) {
		iter.fault_at = rng.below(size);
		fault(Trouble::BadMemory);
	}
	for (unsigned int tries = 0; tries < 30; tries++) {
		iter.pos = 0;
		int64_t ret = by_desc ? send(file, text, flags) : file.write(iter, flags);

		switch (ret) {
		case -KD_EAGAIN:
		case -KD_ENOMEM:
		case -KD_EIO:       /* an MR could not be mapped */
		case -KD_ETIMEDOUT: /* it recovers, and fails fast */
			w->run_for(rng.range(1, 100 * us) << std::min(tries, 8U));
			continue;
		case -KD_EFAULT:
			if (iter.fault_at == SIZE_MAX)
				fail("write() finds a fault where there is none");
			iter.fault_at = SIZE_MAX;
			continue;
		case -KD_EOPNOTSUPP:
			if (!(flags & KD_IO_POLL))
				fail("write() is not supported");
			flags &= ~uint32_t{KD_IO_POLL};
			continue;
		case -KD_EINTR: /* it may have been posted: the pages stay */
			kept.push_back(std::move(text));
			return false;
		case -KD_EMSGSIZE: return size > 300;
		case -KD_EPIPE: return false;
		default: break;
		}
		if (ret != static_cast<int64_t>(size)) {
			fail("write() of %zu bytes returned %lld", size,
			     static_cast<long long>(ret));
			return false;
		}
		reach->messages++;
		reach->bytes += size;
		streams[end].accepted[writer] = number + 1;
		return true;
	}
	return false;
}

void Schedule::write(File &file, uint64_t end, Rng &rng)
{
	uint32_t writer = next_writer++;
	uint64_t count = rng.range(1, many ? 40 : 8);

	for (uint64_t i = 0; i < count; i++) {
		auto sent = [&] {
			auto &accepted = streams[end].accepted;
			auto found = accepted.find(writer);

			return found == accepted.end() ? 0 : found->second;
		};
		if (!write_one(file, end, writer, sent(), rng))
			return;
		if (rng.chance(20))
			w->run_for(rng.below(100 * us));
	}
}

/* A whole message. */
void Schedule::arrived(Stream &stream, std::string_view text)
{
	Header header;

	if (text.size() < sizeof(header)) {
		fail("a message of %zu bytes, which nobody sent", text.size());
		return;
	}
	std::memcpy(&header, text.data(), sizeof(header));
	if (header.magic != message_magic || header.length != text.size() ||
	    !intact(text, header)) {
		fail("a message of %zu bytes that was changed: writer %u, number %u, length %u",
		     text.size(), header.writer, header.number, header.length);
		return;
	}
	if (stream.peer && stream.peer != header.end)
		fail("a message of device node %llu came where those of %llu do",
		     static_cast<unsigned long long>(header.end),
		     static_cast<unsigned long long>(stream.peer));
	stream.peer = header.end;
	uint32_t &next = stream.from[header.writer].next;
	if (header.number != next)
		fail("message %u of writer %u came when %u was due", header.number, header.writer,
		     next);
	next = header.number + 1;
}

/* One reader at a time, who may read parts, so that the order can be told. */
void Schedule::read(File &file, uint64_t end, Rng &rng)
{
	Stream &stream = streams[end];
	uint64_t patience = rng.range(1, 60);
	std::string buffer;

	if (stream.taken)
		return;
	stream.taken = true;
	for (unsigned int idle = 0; idle < patience;) {
		std::size_t room = rng.chance(30) ? rng.range(1, 400) : 32768;
		uint32_t flags = rng.chance(15) ? uint32_t{KD_IO_NOWAIT} : 0;

		if (rng.chance(15))
			flags |= KD_IO_POLL;
		bool by_desc = rng.chance(20);
		int64_t ret = by_desc ? receive(file, buffer, room, flags)
				      : file.read(buffer, room, flags);
		if (ret == -KD_EINTR && by_desc)
			return; /* it may still get a message, so nobody reads on */
		if (ret == -KD_EOPNOTSUPP || ret == -KD_EAGAIN) {
			idle++;
			w->run_for(rng.range(1, 100 * us));
			continue;
		}
		if (ret == 0 && !stream.deleted)
			stream.ended = true;
		if (ret <= 0)
			break;
		if (lies)
			continue;
		stream.part += buffer;
		Header header;
		if (stream.part.size() >= sizeof(header)) {
			std::memcpy(&header, stream.part.data(), sizeof(header));
			if (stream.part.size() >= header.length) {
				arrived(stream, stream.part);
				stream.part.clear();
			}
		}
		if (!faultless && rng.chance(8)) {
			fault(Trouble::SlowReader);
			w->run_for(rng.below(2 * ms));
		}
	}
	stream.taken = false;
}

/* The calls that neither send nor receive, and poll(). */
void Schedule::mixed(File &file, uint64_t, Rng &rng)
{
	for (uint64_t i = rng.range(1, 8); i; i--) {
		switch (rng.below(7)) {
		case 0:
		case 1: {
			int err = file.ping(static_cast<uint32_t>(rng.range(1, 200)),
					    rng.chance(20) ? uint32_t{KDIRECT_PING_POLL} : 0,
					    rng.range(1, 20) * ms);

			if (!err)
				reach->pings++;
			if (err == KD_EBADMSG && !lies)
				fail("a ping came back changed");
			break;
		}
		case 2:
			(void)file.set_flags(rng.chance(50) ? uint32_t{KDIRECT_OPEN_POLL} : 0);
			break;
		case 3: (void)file.info(); break;
		case 4: (void)file.poll(KD_POLL_IN | KD_POLL_OUT, 0); break;
		case 5: (void)file.poll(KD_POLL_IN, rng.below(2 * ms)); break;
		default: w->run_for(rng.below(300 * us)); break;
		}
	}
}

/* Opens what there is, uses it, and closes it again. */
void Schedule::user(Machine &m, Rng &rng)
{
	unsigned int reader = rng.chance(45), rounds = rng.chance(20) ? 2 : 1;

	for (; rounds; rounds--) {
		File file;
		uint64_t end = 0;

		for (uint64_t wait = 20 * us; wait < 60 * ms && !file && !winding_up;) {
			std::vector<std::string> there;

			for (const auto &devnode : w->devnodes)
				if (devnode->node == m.node && devnode->channel && !devnode->raw)
					there.push_back(devnode->name);
			if (!there.empty())
				file = open(m, there[rng.below(there.size())], end);
			if (!file)
				w->run_for(wait += wait / 2);
		}
		if (!file)
			return;
		if (reader)
			read(file, end, rng);
		else if (rng.chance(75))
			write(file, end, rng);
		else
			mixed(file, end, rng);
		if (rng.chance(30))
			mixed(file, end, rng);
	}
}

} // namespace sim
