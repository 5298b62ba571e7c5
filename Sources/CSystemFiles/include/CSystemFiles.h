#ifndef C_SYSTEM_FILES_H
#define C_SYSTEM_FILES_H

// What Swift's Glibc module does not show of Linux's files. Linux only; other systems have their own calls.

#include <sys/types.h>

/// Frees the file's blocks in [offset, offset + count) and leaves the file's size as it is: fallocate(2) with
/// FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE. Whole filesystem blocks are freed, the rest of the range is zeroed.
/// Returns 0, or -1 with errno set.
int c_system_files_punch(int file_descriptor, off_t offset, off_t count);

/// The first offset at or after `offset` that holds data: lseek(2) with SEEK_DATA. -1 with ENXIO: none up to the end.
/// Moves the descriptor's file offset, which pread and pwrite do not use.
off_t c_system_files_next_data(int file_descriptor, off_t offset);

/// The first offset at or after `offset` that lies in a hole; the end of the file counts as one: SEEK_HOLE.
off_t c_system_files_next_hole(int file_descriptor, off_t offset);

/// Reads what is in the page cache and nothing else: preadv2(2) with RWF_NOWAIT. May read less than `count`.
/// Returns -1 with EAGAIN where the disk would be needed, EOPNOTSUPP where the file system can't tell (tmpfs before 6.6),
/// ENOSYS on kernels before 4.14.
ssize_t c_system_files_read_now(int file_descriptor, void *buffer, size_t count, off_t offset);

/// Whether the processor has instructions for AES.
int c_system_files_has_aes(void);

#endif
