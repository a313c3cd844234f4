// SPDX-License-Identifier: GPL-2.0-only
// What run() does for mappings of the peer: makes keys for what it asks for, and takes
// them back. A key exists only while the peer may use it; it is deregistered when the
// peer has let go of it, or when no QP is left that it could be used through.
#include "channel.hh"
#include "registry.hh"

using namespace kd;

namespace
{

void destroy_keys(Sleepable, Grant &grant)
{
	for (; grant.nr_keys; grant.nr_keys--)
		kd_key_destroy(grant.keys[grant.nr_keys - 1]);
	kd_free(grant.keys);
	grant.keys = nullptr;
}

Status make_keys(Sleepable s, Grant &grant, kd_pd *pd, uint32_t key_bytes)
{
	const Export &from = *grant.from;
	uint64_t size = from.params.size, count = wire::map_keys(size, key_bytes);
	if (count > wire::max_map_keys)
		return KD_ENOMEM;
	grant.key_bytes = key_bytes;
	grant.keys = create_array<kd_key *>(s, count);
	if (!grant.keys)
		return KD_ENOMEM;
	for (uint64_t at = 0; at < size; at += key_bytes) {
		uint64_t rest = size - at;
		Status st = kd_key_create(pd, from.region, at,
					  uint32_t(rest < key_bytes ? rest : key_bytes),
					  !grant.read_only, &grant.keys[grant.nr_keys]);
		if (!st.ok())
			return st;
		grant.nr_keys++;
	}
	return {};
}

} // namespace

bool kd_channel::make_grants(Sleepable s)
{
	grants = create_array<Grant>(s, wire::max_maps);
	for (uint32_t i = 0; grants && i < wire::max_maps; i++) {
		grants[i].channel = this;
		grants[i].id = i;
	}
	return grants;
}

// The grant's export: that which it had before an outage, or the one of that name. 0 or why
// there is none.
uint16_t kd_channel::find_export(Sleepable s, Grant &grant)
{
	MutexGuard guard(registry().lock, s);
	Export *found = grant.from;
	grant.sole = found && grant.alone;
	if (!found) {
		found = registry().find_export(net, listener, grant.name);
		if (!found)
			return KD_ENOENT;
		bool twice = false;
		found->grants.each([&](Grant &g) { twice |= g.channel == this; });
		if (twice)
			return KD_EBUSY;
		found->grants.push_back(&grant);
		found->nr_grants++;
		grant.from = found;
	}
	if (found->params.read_only)
		grant.read_only = true;
	if (!grant.read_only)
		found->add_writer(grant);
	return 0;
}

// Finds the export and makes its keys; 0 or why not.
uint16_t kd_channel::offer(Sleepable s, Grant &grant)
{
	// Another than before, or one that is being deleted
	if (grant.from && (grant.revoke || !same_name(grant.from->name, grant.name))) {
		release_grant(s, grant);
		SpinGuard guard(ctrl_lock);
		grant.revoke = false;
	}
	if (uint16_t err = find_export(s, grant))
		return err;
	uint32_t key_bytes = limits::key_bytes(kd_device_attr(device)->max_mr_pages);
	if (make_keys(s, grant, pd, key_bytes).ok())
		return 0;
	release_grant(s, grant);
	return KD_ENOMEM;
}

// The keys are gone when this returns, and with the last ones an export that is
// being deleted.
void kd_channel::release_grant(Sleepable s, Grant &grant)
{
	destroy_keys(s, grant);
	Export *from = std::exchange(grant.from, nullptr);
	bool last;
	{
		MutexGuard guard(registry().lock, s);
		last = from && from->drop(grant);
	}
	if (last)
		from->end(s);
}

void kd_channel::serve_grants(Sleepable s)
{
	for (uint32_t i = 0; i < wire::max_maps; i++) {
		Grant &grant = grants[i];
		Grant::Phase phase;
		bool said;
		{
			SpinGuard guard(ctrl_lock);
			phase = grant.phase;
			said = !keys_sending;
		}
		uint16_t error = 0;
		if (phase == Grant::Phase::Away) {
			forget_grant(s, grant);
			continue;
		}
		if (phase == Grant::Phase::Asked && current() == State::Live)
			error = offer(s, grant);
		else if (phase == Grant::Phase::Returned && said)
			release_grant(s, grant);
		else
			continue;
		{
			SpinGuard guard(ctrl_lock);
			grant.error = error;
			grant.phase = phase == Grant::Phase::Asked ? Grant::Phase::Answering
								   : Grant::Phase::Departing;
			map_look |= 1ULL << i;
		}
		control_pump();
	}
}

// Unless the peer may still ask for it again.
void kd_channel::forget_grant(Sleepable s, Grant &grant)
{
	{
		SpinGuard guard(ctrl_lock);
		bool wait = current() != State::Live || kd_now_ns() < grant.deadline_ns;
		if (grant.phase != Grant::Phase::Away || (!grant.revoke && wait))
			return;
		grant.phase = Grant::Phase::Free;
	}
	release_grant(s, grant);
}

// No QP is left. The peer may ask for what it had.
void kd_channel::suspend_grants(Sleepable s)
{
	for (uint32_t i = 0; grants && i < wire::max_maps; i++) {
		Grant &grant = grants[i];
		destroy_keys(s, grant);
		bool had, gone;
		{
			SpinGuard guard(ctrl_lock);
			had = grant.phase >= Grant::Phase::Offered &&
			      grant.phase <= Grant::Phase::Given;
			gone = grant.phase != Grant::Phase::Away && !had;
			if (had)
				grant.phase = Grant::Phase::Away;
			else if (gone)
				grant.phase = Grant::Phase::Free;
		}
		if (gone)
			release_grant(s, grant);
	}
}

// The peer has so long to ask for them.
void kd_channel::await_grants()
{
	SpinGuard guard(ctrl_lock);
	for (uint32_t i = 0; grants && i < wire::max_maps; i++)
		if (grants[i].phase == Grant::Phase::Away && !grants[i].revoke)
			grants[i].deadline_ns =
				kd_now_ns() + uint64_t(params.connect_timeout_ms) * 1000000;
}

// In teardown: no QP is left.
void kd_channel::release_grants(Sleepable s)
{
	for (uint32_t i = 0; grants && i < wire::max_maps; i++) {
		if (grants[i].phase == Grant::Phase::Free)
			continue;
		release_grant(s, grants[i]);
		SpinGuard guard(ctrl_lock);
		grants[i].phase = Grant::Phase::Free;
	}
}

// When the first of the peer's answers is overdue; 0 = none is awaited.
uint64_t kd_channel::grants_deadline()
{
	uint64_t first = 0;
	const char *late = nullptr;
	uint64_t now = kd_now_ns();
	for (uint32_t i = 0; i < wire::max_maps; i++) {
		SpinGuard guard(ctrl_lock);
		const Grant &grant = grants[i];
		bool awaited = grant.revoke && grant.phase != Grant::Phase::Free &&
			       grant.phase < Grant::Phase::Returned;
		if (grant.phase == Grant::Phase::Away && (!first || grant.deadline_ns < first))
			first = grant.deadline_ns;
		if (!awaited)
			continue;
		if (now >= grant.deadline_ns)
			late = grant.name;
		if (!first || grant.deadline_ns < first)
			first = grant.deadline_ns;
	}
	if (late)
		KD_FAIL(*this, KD_ETIMEDOUT,
			"the peer did not let go of export \"%s\" within %u ms", late,
			drain_timeout_ms.load());
	return late ? 0 : first;
}
