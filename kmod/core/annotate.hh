// SPDX-License-Identifier: GPL-2.0-only
// Clang's -Wthread-safety, in the host build; nothing elsewhere.
#pragma once

#if defined(__clang__)
#define KD_TSA(x) __attribute__((x))
#else
#define KD_TSA(x)
#endif

#define KD_CAPABILITY(name) KD_TSA(capability(name))
#define KD_SCOPED KD_TSA(scoped_lockable)
#define KD_GUARDED_BY(lock) KD_TSA(guarded_by(lock))
#define KD_REQUIRES(...) KD_TSA(requires_capability(__VA_ARGS__))
#define KD_ACQUIRE(...) KD_TSA(acquire_capability(__VA_ARGS__))
#define KD_TRY_ACQUIRE(...) KD_TSA(try_acquire_capability(__VA_ARGS__))
#define KD_RELEASE(...) KD_TSA(release_capability(__VA_ARGS__))
#define KD_EXCLUDES(...) KD_TSA(locks_excluded(__VA_ARGS__))
#define KD_NO_ANALYSIS KD_TSA(no_thread_safety_analysis)
