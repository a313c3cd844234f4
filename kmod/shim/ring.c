// SPDX-License-Identifier: GPL-2.0-only
/* Rings of an open file of a mapping: an open file of their own, their memory, a thread. */

#include <linux/anon_inodes.h>
#include <linux/cgroup.h>
#include <linux/compat.h>
#include <linux/cpumask.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "kdirect.h"

#include "shim.h"

/* --- memory that is shared with a program ---------------------------------------------- */

struct kd_shared {
	void		*mem;
	unsigned long	nr;
	struct page	*pages[];
};

static void kd_shared_free_pages(struct kd_shared *shared)
{
	unsigned long i;

	for (i = 0; i < shared->nr; i++)
		__free_page(shared->pages[i]);
	kvfree(shared);
}

int kd_shared_create(uint64_t size, struct kd_shared **out)
{
	unsigned long nr = size >> PAGE_SHIFT;
	struct kd_shared *shared;

	might_sleep();
	shared = kvzalloc(struct_size(shared, pages, nr), KD_GFP | __GFP_ACCOUNT);
	if (!shared)
		return KD_ENOMEM;
	for (; shared->nr < nr; shared->nr++) {
		struct page *page = alloc_page(KD_GFP | __GFP_ACCOUNT | __GFP_ZERO);

		if (!page)
			goto err_free;
		shared->pages[shared->nr] = page;
	}
	shared->mem = vmap(shared->pages, nr, VM_MAP, PAGE_KERNEL);
	if (!shared->mem)
		goto err_free;
	*out = shared;
	return 0;

err_free:
	kd_shared_free_pages(shared);
	return KD_ENOMEM;
}

void kd_shared_free(struct kd_shared *shared)
{
	might_sleep();
	vunmap(shared->mem);
	kd_shared_free_pages(shared);
}

void *kd_shared_memory(struct kd_shared *shared)
{
	return shared->mem;
}

/* --- threads --------------------------------------------------------------------------- */

struct kd_thread {
	struct task_struct	*task;
	struct mm_struct	*mm;	/* not its memory: it may go */
	struct kd_ring		*ring;
	struct cpumask		cpus;
};

static int kd_thread_run(void *arg)
{
	struct kd_thread *thread = arg;

	allow_kernel_signal(SIGKILL);
	/* the kernel has its own idea until a thread first runs */
	set_cpus_allowed_ptr(current, &thread->cpus);
	kd_ring_thread(thread->ring);
	return 0;
}

static int kd_thread_choose_cpus(struct kd_thread *thread, int cpu)
{
	if (cpu < 0) {
		cpumask_copy(&thread->cpus, current->cpus_ptr);
		return 0;
	}
	if (cpu >= nr_cpu_ids || !cpu_online(cpu) || !cpumask_test_cpu(cpu, current->cpus_ptr))
		return -EINVAL;
	cpumask_set_cpu(cpu, &thread->cpus);
	return 0;
}

int kd_thread_start(struct kd_ring *ring, int32_t cpu, struct kd_thread **out)
{
	struct kd_thread *thread;
	int ret;

	might_sleep();
	thread = kzalloc(sizeof(*thread), GFP_KERNEL_ACCOUNT);
	if (!thread)
		return KD_ENOMEM;
	thread->ring = ring;
	ret = kd_thread_choose_cpus(thread, cpu);
	if (ret)
		goto err_free;
	thread->task = kthread_create(kd_thread_run, thread, "kdring-%d", task_tgid_nr(current));
	if (IS_ERR(thread->task)) {
		ret = PTR_ERR(thread->task);
		goto err_free;
	}
	/* it runs at the expense of the process */
	set_user_nice(thread->task, task_nice(current));
	ret = cgroup_attach_task_all(current, thread->task);
	if (ret)
		goto err_stop;
	thread->mm = current->mm;
	mmgrab(thread->mm);
	*out = thread;
	wake_up_process(thread->task);
	return 0;

err_stop:
	kthread_stop(thread->task);
err_free:
	kfree(thread);
	return kd_from_errno(ret);
}

void kd_thread_stop(struct kd_thread *thread)
{
	might_sleep();
	send_sig(SIGKILL, thread->task, 1);
	kthread_stop(thread->task);
	mmdrop(thread->mm);
	kfree(thread);
}

bool kd_thread_stopping(void)
{
	return kthread_should_stop();
}

bool kd_thread_adopt(struct kd_thread *thread)
{
	if (!mmget_not_zero(thread->mm))
		return false;
	kthread_use_mm(thread->mm);
	return true;
}

void kd_thread_leave(struct kd_thread *thread)
{
	kthread_unuse_mm(thread->mm);
	mmput(thread->mm);
}

/* --- the open file --------------------------------------------------------------------- */

struct kd_ring_file {
	struct kd_ring	*ring;
	struct file	*of;	/* the mapping's */
	u64		length;
};

static int kd_ring_file_release(struct inode *inode, struct file *file)
{
	struct kd_ring_file *ring_file = file->private_data;

	kd_ring_release(ring_file->ring);
	fput(ring_file->of);
	kfree(ring_file);
	return 0;
}

static int kd_ring_file_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct kd_ring_file *ring_file = file->private_data;
	struct kd_shared *shared = kd_ring_memory(ring_file->ring);

	if (vma->vm_pgoff || vma->vm_end - vma->vm_start != ring_file->length ||
	    !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTCOPY | VM_DONTDUMP);
	return vm_map_pages(vma, shared->pages, shared->nr);
}

static __poll_t kd_ring_file_poll(struct file *file, poll_table *wait)
{
	struct kd_ring_file *ring_file = file->private_data;

	poll_wait(file, to_waitq(kd_ring_waitq(ring_file->ring)), wait);
	return kd_poll_events(kd_ring_poll(ring_file->ring));
}

static long kd_ring_file_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct kdirect_ring_enter __user *ptr = (void __user *)arg;
	struct kd_ring_file *ring_file = file->private_data;
	struct kdirect_ring_enter enter;
	int err;

	if (cmd != KDIRECT_IOC_RING_ENTER)
		return -ENOTTY;
	if (copy_from_user(&enter, ptr, sizeof(enter)))
		return -EFAULT;
	err = kd_ring_enter(ring_file->ring, &enter);
	if (err)
		return kd_to_errno(err);
	return copy_to_user(ptr, &enter, sizeof(enter)) ? -EFAULT : 0;
}

static const struct file_operations kd_ring_fops = {
	.owner		= THIS_MODULE,
	.mmap		= kd_ring_file_mmap,
	.poll		= kd_ring_file_poll,
	.unlocked_ioctl	= kd_ring_file_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.release	= kd_ring_file_release,
};

/* Takes over the reference to @of on success. */
static struct file *kd_ring_file_open(struct file *of, struct kdirect_ring_setup *setup)
{
	struct kd_ring_file *ring_file;
	struct file *file;
	int err;

	ring_file = kzalloc(sizeof(*ring_file), GFP_KERNEL_ACCOUNT);
	if (!ring_file)
		return ERR_PTR(-ENOMEM);
	err = kd_ring_create(of->private_data, setup, &ring_file->ring);
	if (err) {
		kfree(ring_file);
		return ERR_PTR(kd_to_errno(err));
	}
	ring_file->length = setup->length;
	file = anon_inode_getfile("[kdirect-ring]", &kd_ring_fops, ring_file, O_RDWR | O_CLOEXEC);
	if (IS_ERR(file)) {
		kd_ring_release(ring_file->ring);
		kfree(ring_file);
		return file;
	}
	ring_file->of = of;
	return file;
}

long kd_ring_setup(struct file *of, struct kdirect_ring_setup __user *arg)
{
	struct kdirect_ring_setup setup;
	struct file *file;
	int fd;

	if (copy_from_user(&setup, arg, sizeof(setup)))
		return -EFAULT;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	file = kd_ring_file_open(get_file(of), &setup);
	if (IS_ERR(file)) {
		fput(of);
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	if (copy_to_user(arg, &setup, sizeof(setup))) {
		fput(file);
		put_unused_fd(fd);
		return -EFAULT;
	}
	fd_install(fd, file);
	return fd;
}
