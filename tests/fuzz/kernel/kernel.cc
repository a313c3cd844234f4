// SPDX-License-Identifier: GPL-2.0-only
// The kernel's functions of kernel.h, on the simulation.
#include "kernel.hh"

#include <cstddef>
#include <cstring>
#include <map>

#include "../input.h"

extern "C" {
#include "os.h"

int __real_kd_node_create(kd_channel *channel, const char *name, kd_node **out);
int __real_kd_map_node_create(kd_mapping *mapping, const char *name, kd_node **out);
void __real_kd_node_destroy(kd_node *node);
void __real_kd_event_publish(const kd_event *event);
int shim_node_create(kd_channel *channel, const char *name, kd_node **out);
int shim_map_node_create(kd_mapping *mapping, const char *name, kd_node **out);
void shim_node_destroy(kd_node *node);
void shim_event_publish(const kd_event *event);

struct net *kernel_init_net;
}

namespace
{

kernel::State the_state;
int locks_held, readers;
/* the simulation's nodes, and the shim's */
std::map<kd_node *, kd_node *> nodes;
struct kernel_class the_class;

/* A namespace is the simulation's; the shim reads its number. */
static_assert(offsetof(struct net, ns) == offsetof(sim::Net, inode));
static_assert(sizeof(struct net) <= sizeof(sim::Net));

bool in_user_memory(const void *ptr, unsigned long n, unsigned long &there)
{
	auto at = reinterpret_cast<uintptr_t>(ptr);
	auto start = reinterpret_cast<uintptr_t>(the_state.user);

	there = 0;
	if (!start || at < start || at - start > the_state.user_size)
		return false;
	there = the_state.user_size - (at - start);
	there = there < n ? there : n;
	return there == n;
}

sk_buff *new_skb(std::size_t size)
{
	auto *skb = static_cast<sk_buff *>(std::calloc(1, sizeof(sk_buff)));

	skb->data = static_cast<u8 *>(std::malloc(size));
	skb->size = static_cast<u32>(size);
	return skb;
}

void take(sk_buff *skb)
{
	the_state.sent.emplace_back(skb->data, skb->data + skb->len);
	nlmsg_free(skb);
}

} // namespace

namespace kernel
{

State &state()
{
	return the_state;
}

void reset()
{
	the_state = {};
}

void must_be_idle()
{
	MUST(!locks_held && !readers && nodes.empty());
}

} // namespace kernel

extern "C" {

/* --- between the core and the shim: the simulation checks, the shim runs --- */

int __wrap_kd_node_create(kd_channel *channel, const char *name, kd_node **out)
{
	kd_node *mine = nullptr;
	int err = the_state.fops ? shim_node_create(channel, name, &mine) : 0;

	if (err)
		return err;
	err = __real_kd_node_create(channel, name, out);
	if (!err)
		nodes[*out] = mine;
	else if (mine)
		shim_node_destroy(mine);
	return err;
}

int __wrap_kd_map_node_create(kd_mapping *mapping, const char *name, kd_node **out)
{
	kd_node *mine = nullptr;
	int err = the_state.fops ? shim_map_node_create(mapping, name, &mine) : 0;

	if (err)
		return err;
	err = __real_kd_map_node_create(mapping, name, out);
	if (!err)
		nodes[*out] = mine;
	else if (mine)
		shim_node_destroy(mine);
	return err;
}

void __wrap_kd_node_destroy(kd_node *node)
{
	auto found = nodes.find(node);

	MUST(found != nodes.end());
	kd_node *mine = found->second;
	nodes.erase(found);
	if (mine)
		shim_node_destroy(mine);
	__real_kd_node_destroy(node);
}

void __wrap_kd_event_publish(const kd_event *event)
{
	if (the_state.family)
		shim_event_publish(event);
	__real_kd_event_publish(event);
}

/* --- memory and text --- */

void *kernel_alloc(size_t size)
{
	if (++the_state.allocs == the_state.fail_alloc)
		return nullptr;
	return std::calloc(1, size);
}

int vscnprintf(char *buf, size_t size, const char *fmt, va_list args)
{
	int n = std::vsnprintf(buf, size, fmt, args);

	if (!size)
		return 0;
	return n < static_cast<int>(size) ? n : static_cast<int>(size) - 1;
}

long strscpy(char *to, const char *from, size_t size)
{
	size_t n = strnlen(from, size);

	if (!size)
		return -E2BIG;
	std::memcpy(to, from, n < size ? n : size - 1);
	to[n < size ? n : size - 1] = '\0';
	return n < size ? static_cast<long>(n) : -E2BIG;
}

char *kasprintf(gfp_t, const char *fmt, ...)
{
	char *out = nullptr;
	va_list args;

	va_start(args, fmt);
	int n = vasprintf(&out, fmt, args);
	va_end(args);
	return n < 0 ? nullptr : out;
}

/* --- locks --- */

void mutex_lock(struct mutex *lock)
{
	/* nothing in between lets another fiber run, so nobody has to wait */
	MUST(!lock->held++);
	locks_held++;
}

void mutex_unlock(struct mutex *lock)
{
	MUST(lock->held--);
	locks_held--;
}

void down_read(struct rw_semaphore *sem)
{
	MUST(!sem->writer);
	sem->readers++;
	readers++;
}

void up_read(struct rw_semaphore *sem)
{
	MUST(sem->readers-- > 0);
	readers--;
}

void down_write(struct rw_semaphore *sem)
{
	MUST(!sem->readers && !sem->writer++);
}

void up_write(struct rw_semaphore *sem)
{
	MUST(sem->writer--);
}

void init_completion(struct completion *done)
{
	done->done = false;
}

void complete(struct completion *done)
{
	done->done = true;
}

void wait_for_completion(struct completion *done)
{
	while (!done->done)
		sim::world().sched.sleep(1 * sim::us);
}

/* --- user memory --- */

unsigned long copy_from_user(void *to, const void *from, unsigned long n)
{
	unsigned long there;

	/* as in the kernel: what could not be read is zeroed */
	std::memset(to, 0, n);
	in_user_memory(from, n, there);
	if (there)
		std::memcpy(to, from, there);
	return n - there;
}

unsigned long copy_to_user(void *to, const void *from, unsigned long n)
{
	unsigned long there;

	in_user_memory(to, n, there);
	if (there)
		std::memcpy(to, from, there);
	return n - there;
}

/* --- files and character devices --- */

size_t iov_iter_count(const struct iov_iter *iter)
{
	const auto *memory = reinterpret_cast<const kd_iter *>(iter);

	return memory->total() - memory->pos;
}

void poll_wait(struct file *, struct wait_queue_head *wq, poll_table *wait)
{
	MUST(wq);
	wait->unused++;
}

/* ring.c and uring.c are not here. */
long kd_ring_setup(struct file *, struct kdirect_ring_setup *)
{
	return -EMFILE;
}

int kd_desc_uring_cmd(struct io_uring_cmd *, unsigned int)
{
	return -EOPNOTSUPP;
}

int kd_desc_uring_iopoll(struct io_uring_cmd *, struct io_comp_batch *, unsigned int)
{
	return 0;
}

int idr_alloc(struct idr *idr, void *ptr, int start, int end, gfp_t)
{
	if (++the_state.allocs == the_state.fail_alloc)
		return -ENOMEM;
	for (int i = start; i < end; i++) {
		if (idr->entries[i])
			continue;
		idr->entries[i] = ptr;
		return i;
	}
	return -ENOSPC;
}

void *idr_find(struct idr *idr, unsigned long id)
{
	return id < ARRAY_SIZE(idr->entries) ? idr->entries[id] : nullptr;
}

void *idr_remove(struct idr *idr, unsigned long id)
{
	return std::exchange(idr->entries[id], nullptr);
}

void idr_destroy(struct idr *idr)
{
	for (void *entry : idr->entries)
		MUST(!entry);
}

struct device *device_create(struct kernel_class *, struct device *, dev_t devt, void *,
			     const char *fmt, ...)
{
	if (++the_state.allocs == the_state.fail_alloc)
		return static_cast<device *>(ERR_PTR(-ENOMEM));
	auto *dev = new device{.devt = static_cast<unsigned int>(devt)};
	va_list args;

	va_start(args, fmt);
	std::vsnprintf(dev->name, sizeof(dev->name), fmt, args);
	va_end(args);
	MUST(!the_state.devices[MINOR(devt)]);
	the_state.devices[MINOR(devt)] = dev;
	return dev;
}

void device_destroy(struct kernel_class *, dev_t devt)
{
	MUST(the_state.devices[MINOR(devt)]);
	delete std::exchange(the_state.devices[MINOR(devt)], nullptr);
}

struct kernel_class *class_create(const char *)
{
	return &the_class;
}

void class_destroy(struct kernel_class *) {}

int alloc_chrdev_region(dev_t *dev, unsigned int, unsigned int, const char *)
{
	*dev = 0;
	return 0;
}

void unregister_chrdev_region(dev_t, unsigned int) {}

void cdev_init(struct cdev *, const struct file_operations *ops)
{
	the_state.fops = ops;
}

int cdev_add(struct cdev *, dev_t, unsigned int)
{
	return 0;
}

void cdev_del(struct cdev *)
{
	the_state.fops = nullptr;
}

/* --- netlink: building --- */

int nla_put(struct sk_buff *skb, int type, int len, const void *data)
{
	u32 total = NLA_ALIGN(NLA_HDRLEN + len);

	MUST(len >= 0 && len + NLA_HDRLEN <= UINT16_MAX);
	if (skb->size - skb->len < total)
		return -EMSGSIZE;
	auto *nla = reinterpret_cast<nlattr *>(skb->data + skb->len);
	std::memset(nla, 0, total);
	nla->nla_type = static_cast<u16>(type);
	nla->nla_len = static_cast<u16>(NLA_HDRLEN + len);
	if (len)
		std::memcpy(nla_data(nla), data, static_cast<std::size_t>(len));
	skb->len += total;
	return 0;
}

struct nlattr *nla_nest_start(struct sk_buff *skb, int type)
{
	auto *nest = reinterpret_cast<nlattr *>(skb->data + skb->len);

	return nla_put(skb, type | NLA_F_NESTED, 0, nullptr) ? nullptr : nest;
}

void nla_nest_end(struct sk_buff *skb, struct nlattr *nest)
{
	nest->nla_len = static_cast<u16>(skb->data + skb->len - reinterpret_cast<u8 *>(nest));
}

struct sk_buff *genlmsg_new(size_t payload, gfp_t)
{
	if (++the_state.allocs == the_state.fail_alloc)
		return nullptr;
	return new_skb(NLMSG_HDRLEN + GENL_HDRLEN + payload);
}

void nlmsg_free(struct sk_buff *skb)
{
	std::free(skb->data);
	std::free(skb);
}

void *genlmsg_put(struct sk_buff *skb, u32 portid, u32 seq, const struct genl_family *, int flags,
		  u8 cmd)
{
	u32 total = NLMSG_HDRLEN + GENL_HDRLEN;

	if (skb->size - skb->len < total)
		return nullptr;
	auto *nlh = reinterpret_cast<nlmsghdr *>(skb->data + skb->len);
	std::memset(nlh, 0, total);
	nlh->nlmsg_pid = portid;
	nlh->nlmsg_seq = seq;
	nlh->nlmsg_flags = static_cast<u16>(flags);
	static_cast<genlmsghdr *>(nlmsg_data(nlh))->cmd = cmd;
	skb->len += total;
	return reinterpret_cast<u8 *>(nlh) + total;
}

void genlmsg_end(struct sk_buff *skb, void *head)
{
	auto *nlh =
		reinterpret_cast<nlmsghdr *>(static_cast<u8 *>(head) - NLMSG_HDRLEN - GENL_HDRLEN);

	nlh->nlmsg_len = static_cast<u32>(skb->data + skb->len - reinterpret_cast<u8 *>(nlh));
	kernel::must_be_wellformed(static_cast<u8 *>(head),
				   nlh->nlmsg_len - NLMSG_HDRLEN - GENL_HDRLEN);
}

void genlmsg_cancel(struct sk_buff *skb, void *head)
{
	skb->len =
		static_cast<u32>(static_cast<u8 *>(head) - skb->data) - NLMSG_HDRLEN - GENL_HDRLEN;
}

int genl_has_listeners(const struct genl_family *, struct net *, unsigned int)
{
	return 1;
}

int genlmsg_multicast_netns(const struct genl_family *, struct net *, struct sk_buff *skb, u32,
			    unsigned int, gfp_t)
{
	take(skb);
	return 0;
}

int genlmsg_reply(struct sk_buff *skb, struct genl_info *)
{
	take(skb);
	return 0;
}

void netlink_ack(struct sk_buff *in, struct nlmsghdr *nlh, int err,
		 const struct netlink_ext_ack *extack)
{
	MUST(err < 0 && nlh == nlmsg_hdr(in));
	the_state.acked++;
	the_state.ack_text = extack->_msg ? extack->_msg : "";
	if (extack->bad_attr) {
		auto *at = reinterpret_cast<const u8 *>(extack->bad_attr);
		MUST(at >= in->data && at < in->data + in->len);
	}
}

bool netlink_ns_capable(const struct sk_buff *, struct user_namespace *, int)
{
	return the_state.admin;
}

bool netlink_capable(const struct sk_buff *, int)
{
	return the_state.host;
}

int netlink_register_notifier(struct notifier_block *nb)
{
	the_state.notifier = nb;
	return 0;
}

int netlink_unregister_notifier(struct notifier_block *)
{
	the_state.notifier = nullptr;
	return 0;
}

int genl_register_family(struct genl_family *family)
{
	the_state.family = family;
	return 0;
}

int genl_unregister_family(struct genl_family *)
{
	the_state.family = nullptr;
	return 0;
}

} /* extern "C" */

/* --- netlink: receiving, as genl_family_rcv_msg() does --- */

namespace kernel
{

void must_be_wellformed(const uint8_t *attrs, std::size_t len)
{
	const nlattr *nla;
	int rem;

	nla_for_each_attr(nla, reinterpret_cast<const nlattr *>(attrs), static_cast<int>(len), rem)
	{
		MUST(nla_type(nla) > 0 && nla_type(nla) <= KDIRECT_A_MAX);
		if (nla->nla_type & NLA_F_NESTED)
			must_be_wellformed(static_cast<uint8_t *>(nla_data(nla)),
					   static_cast<std::size_t>(nla_len(nla)));
	}
	MUST(rem == 0);
}

namespace
{

int dump(const genl_ops &ops, sk_buff &in, sock &sk, netlink_ext_ack &extack)
{
	netlink_callback cb{};
	int ret;

	cb.skb = &in;
	cb.nlh = nlmsg_hdr(&in);
	cb.extack = &extack;
	if ((ret = ops.start(&cb)))
		return ret;
	for (int messages = 0;; messages++) {
		/* every object is shown once: no more than there can be */
		MUST(messages < 4096);
		sk_buff *skb = new_skb(cb.min_dump_alloc);
		skb->sk = &sk;
		ret = ops.dumpit(skb, &cb);
		MUST(ret <= static_cast<int>(skb->size));
		take(skb);
		if (ret <= 0)
			return ret;
	}
}

int handle(const genl_ops &ops, sk_buff &in, sock &sk, net *net, netlink_ext_ack &extack)
{
	auto *nlh = nlmsg_hdr(&in);
	std::vector<nlattr *> attrs(ops.maxattr + 1);
	genl_info info{};

	info.snd_seq = nlh->nlmsg_seq;
	info.snd_portid = in.portid;
	info.nlhdr = nlh;
	info.genlhdr = static_cast<genlmsghdr *>(nlmsg_data(nlh));
	info.attrs = attrs.data();
	info.net = net;
	info.extack = &extack;
	int ret = kernel_nla_parse(
		attrs.data(), static_cast<int>(ops.maxattr),
		reinterpret_cast<nlattr *>(static_cast<char *>(nlmsg_data(nlh)) + GENL_HDRLEN),
		nlmsg_attrlen(nlh, GENL_HDRLEN), ops.policy, &extack, 0);
	if (ret)
		return ret;
	if (nlh->nlmsg_flags & NLM_F_DUMP)
		return ops.dumpit ? dump(ops, in, sk, extack) : -EOPNOTSUPP;
	genl_family &family = *the_state.family;
	if ((ret = family.pre_doit(&ops, &in, &info)))
		return ret;
	ret = ops.doit(&in, &info);
	family.post_doit(&ops, &in, &info);
	return ret;
}

} // namespace

int genl_receive(std::vector<uint8_t> message, uint32_t portid, net *net)
{
	genl_family &family = *the_state.family;
	netlink_ext_ack extack{};
	sock sk{net};
	sk_buff in{};
	auto *nlh = reinterpret_cast<nlmsghdr *>(message.data());
	int acked = the_state.acked, ret = -EOPNOTSUPP;

	if (message.size() < NLMSG_HDRLEN + GENL_HDRLEN)
		return -EINVAL;
	nlh->nlmsg_len = static_cast<u32>(message.size());
	in.data = message.data();
	in.len = in.size = static_cast<u32>(message.size());
	in.portid = portid;
	in.sk = &sk;
	for (unsigned int i = 0; i < family.n_ops; i++)
		if (family.ops[i].cmd == static_cast<genlmsghdr *>(nlmsg_data(nlh))->cmd)
			ret = handle(family.ops[i], in, sk, net, extack);
	/* -EINTR says that it was acknowledged: once; otherwise netlink does it now */
	MUST(the_state.acked - acked == (ret == -EINTR));
	if (ret && ret != -EINTR)
		netlink_ack(&in, nlh, ret, &extack);
	if (ret == -EINTR)
		MUST(!the_state.ack_text.empty() && the_state.ack_text.size() < KD_TEXT_MAX);
	return ret;
}

} // namespace kernel
