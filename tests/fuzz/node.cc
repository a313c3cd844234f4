// SPDX-License-Identifier: GPL-2.0-only
/*
 * The character device: arbitrary ioctls, iovecs, flags, opens and closes through
 * the shim's file operations into a channel whose two ends are open here.
 */
#include <algorithm>
#include <deque>
#include <set>

#include "../sim/pair.h"
#include "input.h"
#include "kernel/kernel.hh"

extern "C" {
int kd_nodes_init(void);
void kd_nodes_exit(void);
}

using namespace sim;

namespace
{

constexpr int max_steps = 40;
constexpr std::size_t max_files = 4;

/* What uapi/kdirect.h says that a call may return. */
const std::set<long> write_errors = {EAGAIN,     EMSGSIZE, EFAULT, ERESTARTSYS,
				     EOPNOTSUPP, EPIPE,    ENOMEM};
const std::set<long> read_errors = {EAGAIN,    EFAULT, ERESTARTSYS, EOPNOTSUPP, ECONNRESET,
				    ETIMEDOUT, ENODEV, EIO,         ENOMEM,     EPROTO};
const std::set<long> ping_errors = {EINVAL,      EMSGSIZE, EOPNOTSUPP, ETIMEDOUT, EBADMSG,
				    ERESTARTSYS, EPIPE,    EFAULT,     EPERM};
const std::set<long> submit_errors = {EINVAL, EOPNOTSUPP, EAGAIN, EINTR, ETIMEDOUT,
				      EPIPE,  ENODEV,     EFAULT, ENOMEM};
const std::set<long> buffer_errors = {EINVAL, ENOENT, EFAULT, ENOMEM, EPIPE, ENODEV, EINTR};
const std::set<long> flag_errors = {EINVAL, EOPNOTSUPP, EFAULT};

struct Open {
	::file file{};
	::inode inode{};
	unsigned int calls = 0; /* that use it now */
	bool closed = false;
	bool released = false;
};

struct Call {
	std::vector<std::vector<uint8_t>> memory;
	kd_iter iter;
	kiocb iocb{};
};

class Nodes
{
public:
	explicit Nodes(Input &input)
		: in(input), p({.world = {.seed = in.take<uint8_t>()},
				.channel = [this](kd_channel_params &c) {
					uint8_t kinds = in.take<uint8_t>();
					c.queues = kinds & 1;
					c.poll_queues = kinds >> 1 & 1;
					if (!(kinds & 3))
						c.queues = 1;
					c.depth = 1 + (kinds >> 4);
					c.eager_limit = eager = kinds & 4 ? 256 : 4096;
				}})
	{
	}
	void run();

private:
	/* a size just at, below or above one that decides something */
	std::size_t around_a_limit()
	{
		const std::size_t limits[] = {eager, 65536, 1 << 20, 4096};
		std::size_t limit = limits[in.below(4)];

		return limit + static_cast<std::size_t>(in.take<int8_t>());
	}
	Open *some()
	{
		return files.empty() ? nullptr
				     : &files[in.below(static_cast<uint32_t>(files.size()))];
	}
	void start(Open &open, std::function<void()> body)
	{
		open.calls++;
		tasks.push_back(p.w.spawn("call", [this, &open, body = std::move(body)] {
			body();
			open.calls--;
			finish(open);
		}));
	}
	/* as the kernel: release comes after the last call that uses the file */
	void finish(Open &open)
	{
		if (!open.closed || open.calls || open.released)
			return;
		open.released = true; // release may let others run
		fops.release(&open.inode, &open.file);
	}
	void open();
	void io(Open &open, bool write);
	void ioctl(Open &open);
	void step();

	Input &in;
	uint32_t eager = 0;
	Pair p;
	file_operations fops{};
	std::deque<Open> files;
	std::deque<Call> calls;
	std::vector<Task> tasks;
	std::vector<uint8_t> user = std::vector<uint8_t>(256);
};

void Nodes::open()
{
	uint8_t how = in.take<uint8_t>();

	if (std::count_if(files.begin(), files.end(), [](const Open &o) { return !o.closed; }) >=
	    int(max_files))
		return;
	files.emplace_back();
	Open &open = files.back();
	open.inode.minor = how & 128 ? in.take<uint16_t>() : in.below(2);
	open.file.f_mode = 1 + how % 3;
	open.file.f_flags = how & 64 ? O_NONBLOCK : 0;
	int ret = 0;
	p.w.call([&] { ret = fops.open(&open.inode, &open.file); });
	MUST(!ret || ret == -ENODEV || ret == -ENOMEM);
	if (ret)
		files.pop_back();
}

void Nodes::io(Open &open, bool write)
{
	uint8_t how = in.take<uint8_t>();
	Call &call = calls.emplace_back();
	std::size_t count = 1 + (how & 3);

	for (std::size_t i = 0; i < count; i++) {
		std::size_t len = how & 128 ? around_a_limit()
				  : how & 4 ? in.take<uint16_t>() * 20
					    : in.take<uint8_t>();
		call.memory.emplace_back(len, 'u');
		call.iter.segments.push_back({call.memory.back().data(), len});
	}
	if (how & 8)
		call.iter.fault_at = in.number();
	call.iter.user = how & 16;
	call.iocb.ki_filp = &open.file;
	call.iocb.ki_flags = (how & 32 ? IOCB_NOWAIT : 0) | (how & 64 ? IOCB_HIPRI : 0);
	start(open, [this, &call, &open, write] {
		auto *iter = reinterpret_cast<iov_iter *>(&call.iter);
		bool nowait =
			(call.iocb.ki_flags & IOCB_NOWAIT) || (open.file.f_flags & O_NONBLOCK);
		ssize_t ret;

		p.w.sched.current()->nowait = nowait;
		ret = write ? fops.write_iter(&call.iocb, iter) : fops.read_iter(&call.iocb, iter);
		p.w.sched.current()->nowait = false;
		if (ret >= 0) {
			MUST(static_cast<std::size_t>(ret) == call.iter.pos);
			MUST(!write || call.iter.pos == call.iter.total());
		} else {
			MUST((write ? write_errors : read_errors).count(-ret));
			MUST(nowait || ret != -EAGAIN);
		}
	});
}

void Nodes::ioctl(Open &open)
{
	static const unsigned int known[] = {KDIRECT_IOC_SET_FLAGS, KDIRECT_IOC_GET_FLAGS,
					     KDIRECT_IOC_INFO, KDIRECT_IOC_PING};
	static const unsigned int of_descs[] = {KDIRECT_IOC_SUBMIT, KDIRECT_IOC_SUBMIT,
						KDIRECT_IOC_BUFFER_SET, KDIRECT_IOC_BUFFER_DEL};
	uint8_t how = in.take<uint8_t>(), descs = how & 128 ? 0 : in.take<uint8_t>();
	unsigned int cmd = how & 128    ? in.take<uint32_t>()
			   : descs & 64 ? of_descs[how & 3]
					: known[how & 3];
	/* as a rule within the memory, sometimes around its end */
	std::size_t at = how & 4 ? in.take<uint8_t>() : 0;
	unsigned long arg = reinterpret_cast<unsigned long>(user.data()) + at;

	if (how & 8)
		arg = static_cast<unsigned long>(in.number());
	if (cmd == KDIRECT_IOC_PING && !(how & 16) && at + sizeof(kdirect_ping) <= user.size()) {
		kdirect_ping ping{};
		ping.size = static_cast<uint32_t>(how & 32 ? around_a_limit() : in.number());
		ping.flags = in.take<uint8_t>() & (how & 64 ? 0xff : KDIRECT_PING_FLAGS);
		ping.timeout_ns = in.number() * 100000;
		std::memcpy(user.data() + at, &ping, sizeof(ping));
	} else if (cmd == KDIRECT_IOC_SUBMIT && !(how & 16) && at + 192 <= user.size()) {
		auto base = reinterpret_cast<uint64_t>(user.data());
		kdirect_desc desc{};
		desc.opcode = descs & 1 ? KDIRECT_OP_SEND : KDIRECT_OP_RECV;
		desc.flags = descs & 2 ? KDIRECT_DESC_FIXED : 0;
		desc.length = descs & 4 ? in.take<uint16_t>() : in.take<uint8_t>();
		desc.addr = descs & 2 ? in.take<uint8_t>() : base + in.take<uint8_t>();
		kdirect_submit submit{.descs = base + at + 64,
				      .completions = base + at + 128,
				      .nr_descs = 1,
				      .nr_completions = 2,
				      .min_completions = descs & 8 ? 1U : 0U,
				      .flags = descs & 16 ? uint32_t{KDIRECT_SUBMIT_POLL} : 0,
				      .timeout_ns = descs & 32 ? in.number() * 1000 : 0};
		std::memcpy(user.data() + at, &submit, sizeof(submit));
		std::memcpy(user.data() + at + 64, &desc, sizeof(desc));
	} else if (cmd == KDIRECT_IOC_BUFFER_SET && !(how & 16) && at + 64 <= user.size()) {
		kdirect_buffer buffer{.addr = reinterpret_cast<uint64_t>(user.data()),
				      .length = in.take<uint8_t>()};
		std::memcpy(user.data() + at, &buffer, sizeof(buffer));
	} else {
		std::string text = in.bytes(64);
		std::memcpy(user.data() + std::min(at, user.size() - 64), text.data(), text.size());
	}
	start(open, [this, &open, cmd, arg] {
		long ret = fops.unlocked_ioctl(&open.file, cmd, arg);

		MUST(ret <= 0);
		switch (cmd) {
		case KDIRECT_IOC_SET_FLAGS: MUST(!ret || flag_errors.count(-ret)); break;
		case KDIRECT_IOC_GET_FLAGS:
		case KDIRECT_IOC_INFO: MUST(!ret || ret == -EFAULT); break;
		case KDIRECT_IOC_PING: MUST(!ret || ping_errors.count(-ret)); break;
		case KDIRECT_IOC_SUBMIT: MUST(!ret || submit_errors.count(-ret)); break;
		case KDIRECT_IOC_BUFFER_SET:
		case KDIRECT_IOC_BUFFER_DEL: MUST(!ret || buffer_errors.count(-ret)); break;
		case KDIRECT_IOC_RING_SETUP: MUST(ret); break;
		default: MUST(ret == -ENOTTY);
		}
	});
}

void Nodes::step()
{
	uint8_t op = in.take<uint8_t>();
	Open *open = some();

	switch (op & 15) {
	case 0: this->open(); return;
	case 1:
		if (open && !open->closed) {
			open->closed = true;
			p.w.call([&] { finish(*open); });
		}
		return;
	case 2:
	case 3:
	case 4:
		if (open && !open->closed)
			io(*open, true);
		return;
	case 5:
	case 6:
	case 7:
		if (open && !open->closed)
			io(*open, false);
		return;
	case 8:
	case 9:
	case 10:
		if (open && !open->closed)
			ioctl(*open);
		return;
	case 11:
		if (open && !open->closed)
			p.w.call([&] {
				poll_table table{};
				__poll_t now = fops.poll(&open->file, &table);
				MUST(table.unused == 2);
				MUST(!(now & EPOLLERR) || now & EPOLLHUP);
			});
		return;
	case 12: p.w.run_for(in.take<uint8_t>() * 4 * us); return;
	case 13: p.w.run_for(in.take<uint8_t>() * 10 * ms); return;
	case 14:
		for (Task task : tasks)
			p.w.signal(task, op & 16);
		return;
	case 15:
		switch (op >> 4 & 3) {
		case 0: p.w.del("c0"); return;
		case 1: p.w.del("store.0"); return;
		case 2: p.w.set_link(p.b, !p.b.link_up); return;
		case 3: kernel::state().fail_alloc = kernel::state().allocs + 1; return;
		}
	}
}

void Nodes::run()
{
	p.w.call([] { MUST(!kd_nodes_init()); });
	fops = *kernel::state().fops;
	kernel::state().user = user.data();
	kernel::state().user_size = user.size();
	p.w.user[reinterpret_cast<uint64_t>(user.data())] = user.size();
	MUST(!p.begin());
	MUST(p.w.run_until_live("c0") && p.w.run_until_live("store.0"));
	for (int i = 0; i < max_steps && !in.empty(); i++)
		step();
	p.w.set_link(p.b, true);
	p.w.del("c0");
	MUST(p.w.run_until([&] { return p.w.node().last_state.empty(); }, 120 * sec));
	/* who reads the last messages, or waits, comes to an end */
	MUST(p.w.finish(tasks));
	p.w.call([&] {
		for (Open &open : files) {
			open.closed = true;
			finish(open);
		}
	});
	p.w.stop();
	p.w.call([] { kd_nodes_exit(); });
	kernel::must_be_idle();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input in(data, size);

	kernel::reset();
	Nodes(in).run();
	kernel::reset();
	return 0;
}
