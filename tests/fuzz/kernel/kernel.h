/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the shim's netlink*.c and node.c need of the kernel's headers, for the host.
 * Types that they only pass on are empty; what decides about input (attributes and
 * their policies, user memory) behaves as in the kernel. Errors are the host's,
 * which are Linux's.
 */
#ifndef KD_FUZZ_KERNEL_H
#define KD_FUZZ_KERNEL_H

#include <errno.h>
#include <limits.h>
#include <linux/ioctl.h>
#include <linux/types.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef uint64_t u64; /* the kernel's are the same, too */
typedef __s64 s64;
typedef unsigned int gfp_t;
typedef unsigned int fmode_t;
typedef unsigned short umode_t;
typedef unsigned int __poll_t;

#undef KERNEL_VERSION
#undef LINUX_VERSION_CODE
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#define LINUX_VERSION_CODE KERNEL_VERSION(7, 2, 0)
#define IS_ENABLED(option) 1
#define KBUILD_MODNAME "kdirect"
#define THIS_MODULE NULL
#define __user
#define __ro_after_init
#define __printf(a, b) __attribute__((format(printf, a, b)))
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define BIT(n) (1U << (n))
#define sizeof_field(type, field) sizeof(((type *)0)->field)
#define min_t(type, a, b) ((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#ifndef __cplusplus
#define static_assert _Static_assert
#endif
#define SZ_1K 1024
#define SZ_16K 16384
#define SZ_1M 1048576
#define PAGE_SIZE 4096UL
#define GFP_KERNEL 0
#define __GFP_RETRY_MAYFAIL 0
#define __GFP_NOWARN 0
#define ERESTARTSYS 512
#define IS_ERR(ptr) ((unsigned long)(ptr) >= (unsigned long)-4095)
#define PTR_ERR(ptr) ((long)(ptr))
#define ERR_PTR(err) ((void *)(long)(err))

/* --- memory, text: fails when the fuzzer says so (kernel.hh) --- */

void *kernel_alloc(size_t size);
#define kzalloc(size, gfp) kernel_alloc(size)
#define kfree(mem) free(mem)
int vscnprintf(char *buf, size_t size, const char *fmt, va_list args);
long strscpy(char *to, const char *from, size_t size);
char *kasprintf(gfp_t gfp, const char *fmt, ...) __printf(2, 3);

#define BITS_TO_LONGS(n) (((n) + 63) / 64)
#define DECLARE_BITMAP(name, n) unsigned long name[BITS_TO_LONGS(n)]
static inline void bitmap_zero(unsigned long *map, unsigned int n)
{
	memset(map, 0, BITS_TO_LONGS(n) * sizeof(long));
}

static inline int __test_and_set_bit(unsigned int bit, unsigned long *map)
{
	unsigned long mask = 1UL << bit % 64;
	int old = !!(map[bit / 64] & mask);

	map[bit / 64] |= mask;
	return old;
}

/* --- locks: held by whom they should be; they are never waited for --- */

struct mutex {
	int held;
};
struct rw_semaphore {
	int readers;
	int writer;
};
struct completion {
	bool done;
};

#define DEFINE_MUTEX(name) struct mutex name
#define DECLARE_RWSEM(name) struct rw_semaphore name
void mutex_lock(struct mutex *lock);
void mutex_unlock(struct mutex *lock);
void down_read(struct rw_semaphore *sem);
void up_read(struct rw_semaphore *sem);
void down_write(struct rw_semaphore *sem);
void up_write(struct rw_semaphore *sem);
void init_completion(struct completion *done);
void complete(struct completion *done);
void wait_for_completion(struct completion *done);

/* --- RDMA, work: names for shim.h --- */

struct ib_device;
struct ib_qp {
	struct ib_device *device;
};
struct ib_cq;
struct ib_pd;
struct ib_mr;
struct ib_cqe {
	void *done;
};
struct ib_sge {
	int unused;
};
struct ib_send_wr {
	int unused;
};
struct ib_reg_wr {
	int unused;
};
struct ib_rdma_wr {
	int unused;
};
struct ib_atomic_wr {
	int unused;
};
struct ib_client {
	int unused;
};
struct rdma_cm_id;
struct rdma_conn_param {
	int unused;
};
struct work_struct {
	int unused;
};
struct tasklet_struct {
	int unused;
};
struct workqueue_struct;
struct sg_table {
	int unused;
};
struct scatterlist {
	int unused;
};
struct mm_struct;
struct page;
struct wait_queue_head;
struct iov_iter;

/* --- user memory: one region that ends (kernel.hh) --- */

unsigned long copy_from_user(void *to, const void *from, unsigned long n);
unsigned long copy_to_user(void *to, const void *from, unsigned long n);
#define get_user(value, ptr) (copy_from_user(&(value), (ptr), sizeof(value)) ? -EFAULT : 0)
static inline void *memdup_user(const void *from, size_t len)
{
	void *mem = kernel_alloc(len);

	if (!mem)
		return ERR_PTR(-ENOMEM);
	if (!copy_from_user(mem, from, len))
		return mem;
	free(mem);
	return ERR_PTR(-EFAULT);
}
#define put_user(value, ptr)                                                                       \
	({                                                                                         \
		typeof(*(ptr)) __value = (value);                                                  \
		copy_to_user((ptr), &__value, sizeof(__value)) ? -EFAULT : 0;                      \
	})

/* --- files and character devices --- */

#define FMODE_READ 1U
#define FMODE_WRITE 2U
#define FMODE_NOWAIT 0x8000000U
#define FMODE_CAN_ODIRECT 0x400000U
#define IOCB_HIPRI 1
#define IOCB_NOWAIT 8
#ifndef O_NONBLOCK
#define O_NONBLOCK 04000
#endif
#define EPOLLIN 0x01
#define EPOLLPRI 0x02
#define EPOLLOUT 0x04
#define EPOLLERR 0x08
#define EPOLLHUP 0x10
#define EPOLLRDNORM 0x40
#define EPOLLWRNORM 0x100
#define EPOLLRDHUP 0x2000
#define MINOR(dev) ((int)((dev)&0xfffff))

struct inode {
	unsigned int minor;
};
struct file_operations;
struct io_uring_cmd;
struct io_comp_batch;
struct file {
	fmode_t f_mode;
	unsigned int f_flags;
	const struct file_operations *f_op;
	void *private_data;
};
struct kiocb {
	struct file *ki_filp;
	long long ki_pos;
	void (*ki_complete)(struct kiocb *iocb, long ret);
	int ki_flags;
};
static inline int is_sync_kiocb(const struct kiocb *iocb)
{
	return !iocb->ki_complete;
}
typedef long long kernel_loff_t;
#define loff_t kernel_loff_t
#define EIOCBQUEUED 529
typedef struct poll_table_struct {
	int unused;
} poll_table;
#ifndef __cplusplus
#define class kernel_class
#endif
struct device {
	unsigned int devt;
	char name[64];
};
struct kernel_class {
	char *(*devnode)(const struct device *dev, umode_t *mode);
};
struct file_operations {
	void *owner;
	loff_t (*llseek)(struct file *file, loff_t offset, int whence);
	int (*open)(struct inode *inode, struct file *file);
	int (*release)(struct inode *inode, struct file *file);
	ssize_t (*read_iter)(struct kiocb *iocb, struct iov_iter *to);
	ssize_t (*write_iter)(struct kiocb *iocb, struct iov_iter *from);
	__poll_t (*poll)(struct file *file, poll_table *wait);
	long (*unlocked_ioctl)(struct file *file, unsigned int cmd, unsigned long arg);
	long (*compat_ioctl)(struct file *file, unsigned int cmd, unsigned long arg);
	int (*uring_cmd)(struct io_uring_cmd *cmd, unsigned int issue_flags);
	int (*uring_cmd_iopoll)(struct io_uring_cmd *cmd, struct io_comp_batch *batch,
				unsigned int flags);
};
struct cdev {
	void *owner;
	const struct file_operations *ops;
};
struct idr {
	void *entries[2048];
};
#define DEFINE_IDR(name) struct idr name

static inline unsigned int iminor(const struct inode *inode)
{
	return inode->minor;
}
static inline loff_t fixed_size_llseek(struct file *file, loff_t offset, int whence, loff_t size)
{
	return offset < 0 || offset > size ? -EINVAL : offset;
}
static inline int stream_open(struct inode *inode, struct file *file)
{
	return 0;
}
static inline const char *dev_name(const struct device *dev)
{
	return dev->name;
}
size_t iov_iter_count(const struct iov_iter *iter);
void poll_wait(struct file *file, struct wait_queue_head *wq, poll_table *wait);
static inline long compat_ptr_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return -ENOTTY;
}

int idr_alloc(struct idr *idr, void *ptr, int start, int end, gfp_t gfp);
void *idr_find(struct idr *idr, unsigned long id);
void *idr_remove(struct idr *idr, unsigned long id);
void idr_destroy(struct idr *idr);
struct device *device_create(struct kernel_class *cls, struct device *parent, dev_t devt,
			     void *data, const char *fmt, ...) __printf(5, 6);
void device_destroy(struct kernel_class *cls, dev_t devt);
struct kernel_class *class_create(const char *name);
void class_destroy(struct kernel_class *cls);
int alloc_chrdev_region(dev_t *dev, unsigned int first, unsigned int count, const char *name);
void unregister_chrdev_region(dev_t dev, unsigned int count);
void cdev_init(struct cdev *cdev, const struct file_operations *ops);
int cdev_add(struct cdev *cdev, dev_t dev, unsigned int count);
void cdev_del(struct cdev *cdev);

#include "netlink_kernel.h"

#ifdef __cplusplus
}
#endif
#endif
