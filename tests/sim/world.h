/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A simulated world: machines that run the core, devices, a network between
 * them, virtual time, and faults. One seed decides every schedule.
 *
 *	World w({.seed = 1});
 *	w.add_device("10.0.0.1");
 *	w.add_device("10.0.0.2");
 *	w.listen("store", "10.0.0.2", 7471);
 *	w.connect("c0", "10.0.0.2", 7471);
 *	w.run_until_live("c0");
 *	File f = w.open("c0");
 *	f.write("hello");
 *
 * Calls that may sleep run in a fiber; from outside of any, World::call() starts
 * one and runs the world until it is done. The end of a World unloads the core
 * and reports everything that is left or was wrong.
 */
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../../kmod/shim/os.h"
#include "../../uapi/kdirect.h"
#include "../../uapi/kdirect_netlink.h"
#include "model.h"
#include "registry.h"

namespace sim
{

/* What can be made to fail, by its number since the world began. */
enum class Op : unsigned int {
	Alloc,
	CmCreate,
	CmListen,
	ResolveAddr,
	ResolveRoute,
	Connect,
	Accept,
	Reject,
	PdCreate,
	CqCreate,
	QpCreate,
	DmaCreate,
	PostRecv,
	PostSend,
	PostOffer,
	PostInvalidate,
	PostRead,
	PagesPin,
	PagesAlloc,
	MrCreate,
	MrMap,
	NodeCreate,
	RegionAlloc,
	KeyCreate,
	PostKeys,
	PostIo,
	PagesPinIo,
	RwPrepare,
	RwPost,
	FixedPin,
	FixedMap,
	ChainCreate,
	PostChain,
	SharedCreate,
	ThreadStart,
	PartialPost, /* the provider takes the first WR of a chain only */
	WrError,     /* a WR fails on the device */
	/* what the network does to the connection manager */
	RequestLost,
	ReplyLost,
	ConfirmLost,
	RejectLost,
	DisconnectLost,
	ConnectError, /* instead of ESTABLISHED */
	EventTwice,   /* an event of a connection's id comes twice */
	EventStale,   /* one that came before comes again, some time later */
	Count,
};
constexpr auto nr_ops = static_cast<std::size_t>(Op::Count);
const char *op_name(Op op);

struct Options {
	uint64_t seed = 1;
	const CoreApi *core = nullptr; /* nullptr: the linked one */
	uint64_t min_delay = 1 * us;   /* of a packet, a completion, an event */
	uint64_t max_delay = 20 * us;
	uint64_t retry_timeout = 300 * ms; /* of the transport, without an answer */
	uint64_t cm_timeout = 60 * sec;
	bool allow_rnr = false;
	bool uneven = false; /* some QPs are much slower than others */
};

class World;

/* A process: the number of its fiber, which may be gone. */
using Task = uint64_t;

/* An open file. */
class File
{
public:
	File() = default;
	File(World *w, Node *n, kd_desc_file *f) : world(w), node(n), file(f) {}
	File(File &&other) noexcept { *this = std::move(other); }
	File &operator=(File &&other) noexcept;
	~File() { close(); }

	explicit operator bool() const { return file; }
	kd_desc_file *get() const { return file; }
	/* It is the caller's to close. */
	kd_desc_file *take() { return std::exchange(file, nullptr); }
	void close();

	/* As kd_file_write() and kd_file_read(): bytes, or a negative KD_* value. */
	int64_t write(std::string_view data, uint32_t flags = 0);
	int64_t write(kd_iter &iter, uint32_t flags = 0);
	int64_t read(std::string &out, std::size_t size, uint32_t flags = 0);
	int64_t read(kd_iter &iter, uint32_t flags = 0);
	/* The whole of the next message, or what read() said instead (as text "!errno"). */
	std::string read(std::size_t size = 2 << 20, uint32_t flags = 0);
	int ping(uint32_t size, uint32_t flags = 0, uint64_t timeout_ns = 0,
		 kdirect_ping *out = nullptr);
	int set_flags(uint32_t flags);
	/* KDIRECT_IOC_SUBMIT: 0 or a KD_* value */
	int submit(kdirect_submit &batch);
	kdirect_info info();
	/* poll(): what of @mask holds; waits for it up to @timeout */
	uint32_t poll(uint32_t mask, uint64_t timeout = 0);

private:
	World *world = nullptr;
	Node *node = nullptr;
	kd_desc_file *file = nullptr;
};

kd_iter source_of(std::string_view data);
kd_iter target_in(std::span<char> buffer);

class World
{
public:
	explicit World(const Options &options = {});
	~World();
	World(const World &) = delete;
	World &operator=(const World &) = delete;

	/* --- machines and devices --- */
	Node &node(std::size_t index = 0) { return *nodes.at(index); }
	Node &add_node(const CoreApi &core, std::string name);
	Device &add_device(const char *addr, const DeviceOptions &options = {}, Node *on = nullptr);
	/* as `rdma link del`: events and the client's removal, in an order of the seed's */
	void remove_device(Device &dev);
	Net &add_net();
	void set_link(Device &dev, bool up);
	void set_stuck(Device &dev, bool stuck);
	/* unload: stops the core, removes the devices; ~World() does it otherwise */
	void stop();

	/* --- administration --- */
	using ListenerTweak = std::function<void(kd_listener_params &)>;
	using ChannelTweak = std::function<void(kd_channel_params &)>;
	int listen(const std::string &name, const char *addr, uint16_t port,
		   const ListenerTweak &tweak = {}, kd_error *error = nullptr);
	int connect(const std::string &name, const char *addr, uint16_t port,
		    const ChannelTweak &tweak = {}, kd_error *error = nullptr);
	int del(const std::string &channel);
	int unlisten(const std::string &listener);
	bool info(const std::string &channel, struct kd_channel_info &out);
	bool stats(const std::string &channel, struct kd_channel_stats &out,
		   std::vector<kd_queue_stats> *queues = nullptr);
	/* KDIRECT_STATE_*, or -1 if there is none of this name */
	int state(const std::string &channel);
	bool has_node(const std::string &name, Node *on = nullptr);
	File open(const std::string &name, int *err = nullptr, Node *on = nullptr, bool read = true,
		  bool write = true);
	/* The last CHANNEL_REMOVED or CHANNEL_STATE event of the name that had an error. */
	const EventRecord *last_error(const std::string &channel, Node *on = nullptr);

	/* --- running --- */
	/* Runs @fn in a process and the world until it returns. Inside a fiber: calls it. */
	void call(const std::function<void()> &fn, const char *what = "call", Node *on = nullptr);
	Task spawn(std::string name, std::function<void()> fn, Node *on = nullptr);
	bool run_until(const std::function<bool()> &cond, uint64_t timeout = 60 * sec);
	void run_for(uint64_t time);
	/* until nothing can run before @timeout has passed and all spawned are done */
	bool finish(const std::vector<Task> &tasks, uint64_t timeout = 300 * sec);
	bool running(Task task) const { return sched.alive(task); }
	bool run_until_live(const std::string &channel, uint64_t timeout = 60 * sec);
	bool run_until_gone(const std::string &channel, uint64_t timeout = 120 * sec);
	void signal(Task task, bool fatal);
	uint64_t now() const { return sched.now(); }

	/* --- faults --- */
	void fail_nth(Op op, uint64_t nth, uint64_t times = 1); /* from now on, 1 = the next */
	/* the nth fallible call of any kind before PartialPost */
	void fail_nth_any(uint64_t nth);
	bool fault_fired() const { return fired; }
	uint64_t calls(Op op) const { return counts[static_cast<std::size_t>(op)]; }
	/* takes the failures recorded so far, for tests that expect one */
	std::vector<std::string> failures();

	/* --- for os.h, the fabric and raw peers --- */
	bool inject(Op op);
	uint64_t delay();
	bool connected(const Device *a, const Device *b) const;
	void enter(const char *function, bool may_sleep); /* checks and preempts */
	Node *here();
	void check_free(const void *mem, std::size_t size);
	void *dma_memory(std::size_t size);
	void free_memory(void *mem, std::size_t size);
	void publish(Node *node, const kd_event &event);

	Options opts;
	Sched sched;
	Registry<Node> nodes{"node"};
	Registry<Net> nets{"namespace"};
	Registry<Device> devices{"device"};
	Registry<Cm> cms{"cm id"};
	Registry<Pd> pds{"PD"};
	Registry<Cq> cqs{"CQ"};
	Registry<Qp> qps{"QP"};
	Registry<Mr> mrs{"MR"};
	Registry<Pages> pages{"page list"};
	Registry<DevNode> devnodes{"device node"};
	Registry<Region> regions{"region"};
	Registry<Fixed> fixed{"fixed buffer"};
	Registry<Shared> shared{"shared memory"};
	Registry<Thread> threads{"thread"};
	std::map<uint64_t, std::size_t> user; /* memory of programs, by address */
	std::vector<Zeroes> unmapped;         /* of these, what was still pinned */
	std::unordered_map<uint64_t, Dma> dmas;
	uint64_t next_dma = 1;
	std::map<const kd_cqe *, uint64_t> posted;    /* by whom */
	std::map<const kd_cqe *, uint64_t> lingering; /* of a reset QP: until its CQ goes */
	std::map<const kd_read *, ReadContext> reads;
	std::map<const void *, std::pair<std::size_t, uint64_t>> allocations;
	uint64_t next_allocation = 1;
	struct Poller {
		kd_waitq *waitq;
		unsigned int key;
		Fiber *fiber;
	};
	std::vector<Poller> pollers;
	struct WorkRun {
		void (*fn)(kd_work *);
		Node *node = nullptr;
		uint64_t pending = 0; /* token of the fiber or timer that will run it */
		bool delayed = false;
		Sched::Timer timer{};
		uint64_t sequence = 0;
		uint64_t running = 0; /* id of the fiber that runs it */
		unsigned int cancelling = 0;
	};
	std::map<const kd_work *, WorkRun> works;
	uint64_t next_work = 1;
	std::set<uint64_t> working; /* sequences queued without delay, or running */
	std::vector<std::string> log;
	/* a fault was injected; a line for whoever looks at one schedule */
	std::function<void(Op)> on_fault;
	std::function<void(Node &, const EventRecord &)> on_state;
	std::function<void(const char *what, const std::string &text)> trace;
	uint16_t next_port = 49152;

private:
	void leak_check();
	void report_all();

	std::array<uint64_t, nr_ops> counts{};
	std::array<uint64_t, nr_ops> fail_from{}, fail_to{};
	uint64_t any_count = 0, any_fail = 0;
	bool fired = false;
	bool stopped = false;
};

/* The world of this process; there is at most one at a time. */
World &world();

/* poll(): what @now says of @mask, or 0 at the timeout. Of a process that called it. */
uint32_t wait_for_events(World &w, std::initializer_list<kd_waitq *> wait, uint32_t mask,
			 uint64_t timeout, const std::function<uint32_t()> &now);

kd_addr parse_addr(const char *text);
bool same_addr(const kd_addr &a, const kd_addr &b);
bool any_addr(const kd_addr &a);

} // namespace sim
