// The types of libmpv's client API and stream callbacks (Debian: libmpv-dev), and the functions that this package uses.
//
// The library is not loaded when the program starts, but by the first call to `cmpv_create`. The library depends on
// about two hundred other libraries, which a program that only fetches media does not need. The functions correspond to
// those of libmpv (mpv/client.h, mpv/stream_cb.h). Pass only handles from `cmpv_create` to functions that take a
// handle.
#ifndef CMPV_H
#define CMPV_H

#include <mpv/client.h>
#include <mpv/stream_cb.h>
#include <stdint.h>

/// Creates a handle like `mpv_create`. The result is also null if libmpv can't be loaded.
mpv_handle *_Nullable cmpv_create(void);
/// Returns the dynamic linker's message if libmpv could not be loaded. The result is null if the library was loaded, or
/// if no attempt was made yet.
const char *_Nullable cmpv_loading_error(void);

int cmpv_initialize(mpv_handle *_Nonnull handle);
void cmpv_terminate_destroy(mpv_handle *_Nonnull handle);
int cmpv_set_option_string(
    mpv_handle *_Nonnull handle, const char *_Nonnull name, const char *_Nonnull value);
int cmpv_command_async(mpv_handle *_Nonnull handle, uint64_t reply, const char *_Nullable *_Nullable arguments);
int cmpv_get_property(
    mpv_handle *_Nonnull handle, const char *_Nonnull name, mpv_format format, void *_Nonnull data);
char *_Nullable cmpv_get_property_string(mpv_handle *_Nonnull handle, const char *_Nonnull name);
void cmpv_free(void *_Nullable data);
int cmpv_set_property_async(
    mpv_handle *_Nonnull handle, uint64_t reply, const char *_Nonnull name, mpv_format format, void *_Nonnull data);
int cmpv_observe_property(
    mpv_handle *_Nonnull handle, uint64_t reply, const char *_Nonnull name, mpv_format format);
mpv_event *_Nullable cmpv_wait_event(mpv_handle *_Nonnull handle, double timeout);
void cmpv_wakeup(mpv_handle *_Nonnull handle);
const char *_Nullable cmpv_error_string(int error);
int cmpv_stream_cb_add_ro(
    mpv_handle *_Nonnull handle, const char *_Nonnull scheme, void *_Nullable data,
    mpv_stream_cb_open_ro_fn _Nonnull open);

#endif
