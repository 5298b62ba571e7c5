// Makes contended operations of Swift's `Mutex` on Linux visible to ThreadSanitizer. `scripts/sanitize thread` preloads it.
//
// The code of an uncontended `Mutex` is inlined into its caller, and is therefore instrumented. To wait or to wake a
// waiter, a `Mutex` calls libswiftSynchronization, which is not instrumented. The sanitizer then does not detect that
// the lock was acquired or released, and reports a race on the guarded state. These three functions replace those of
// the library, call the originals, and report the operation. Their names and signatures are those of Swift 6.3. If the
// library lacks them, the run ends.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context))

#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK_SLOW "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

// This symbol is absent if the process is not instrumented, such as SwiftPM itself.
extern __attribute__((weak)) void __tsan_acquire(void *address);
extern __attribute__((weak)) void __tsan_release(void *address);

SWIFT void lock_slow(uint32_t thread, SELF void *mutex) __asm__(LOCK_SLOW);
SWIFT bool try_lock_slow(SELF void *mutex) __asm__(TRY_LOCK_SLOW);
SWIFT void unlock_slow(SELF void *mutex) __asm__(UNLOCK_SLOW);

static void *next(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (function == NULL) {
        fprintf(stderr, "sanitize: the Mutex of this Swift version has no %s; update scripts/sanitizers/mutex.c\n", name);
        exit(1);
    }
    return function;
}

// Checks before `main`, when the process can still exit quietly.
__attribute__((constructor)) static void check(void) {
    if (__tsan_acquire == NULL) return;
    next(LOCK_SLOW);
    next(TRY_LOCK_SLOW);
    next(UNLOCK_SLOW);
}

SWIFT void lock_slow(uint32_t thread, SELF void *mutex) {
    SWIFT void (*lock)(uint32_t, SELF void *) = next(LOCK_SLOW);
    lock(thread, mutex);
    if (__tsan_acquire != NULL) __tsan_acquire(mutex);
}

SWIFT bool try_lock_slow(SELF void *mutex) {
    SWIFT bool (*try_lock)(SELF void *) = next(TRY_LOCK_SLOW);
    bool is_locked = try_lock(mutex);
    if (is_locked && __tsan_acquire != NULL) __tsan_acquire(mutex);
    return is_locked;
}

SWIFT void unlock_slow(SELF void *mutex) {
    SWIFT void (*unlock)(SELF void *) = next(UNLOCK_SLOW);
    if (__tsan_release != NULL) __tsan_release(mutex);
    unlock(mutex);
}
