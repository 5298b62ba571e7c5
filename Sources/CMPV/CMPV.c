#include "CMPV.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

// The name of the library contains the major version of the interface in the header.
#if MPV_CLIENT_API_VERSION >= MPV_MAKE_VERSION(2, 0)
#define LIBRARY "libmpv.so.2"
#else
#define LIBRARY "libmpv.so.1"
#endif

// AV_LOG_QUIET of libavutil, on which libmpv depends.
#define QUIET (-8)

static void *library;
static const char *loading_error;

#define FUNCTION(name) static __typeof__(&mpv_##name) loaded_##name;
#define FUNCTIONS \
    FUNCTION(create) \
    FUNCTION(initialize) \
    FUNCTION(terminate_destroy) \
    FUNCTION(set_option_string) \
    FUNCTION(command_async) \
    FUNCTION(get_property) \
    FUNCTION(get_property_string) \
    FUNCTION(free) \
    FUNCTION(set_property_async) \
    FUNCTION(observe_property) \
    FUNCTION(wait_event) \
    FUNCTION(wakeup) \
    FUNCTION(error_string) \
    FUNCTION(stream_cb_add_ro)
FUNCTIONS
#undef FUNCTION

static void load(void) {
    library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    int complete = library != NULL;
#define FUNCTION(name) complete = complete && (loaded_##name = (__typeof__(loaded_##name))dlsym(library, "mpv_" #name)) != NULL;
    FUNCTIONS
#undef FUNCTION
    if (complete) {
        // The first handle suppresses libavformat's messages, which include URLs. When that handle is destroyed while
        // others are open, libavformat would write the messages to standard error.
        void (*set_log_level)(int) = (void (*)(int))dlsym(library, "av_log_set_level");
        if (set_log_level != NULL) set_log_level(QUIET);
        return;
    }
    loading_error = dlerror();
    if (loading_error == NULL) loading_error = LIBRARY " can't be loaded";
    library = NULL;
}

mpv_handle *cmpv_create(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return library == NULL ? NULL : loaded_create();
}

const char *cmpv_loading_error(void) { return loading_error; }

int cmpv_initialize(mpv_handle *handle) { return loaded_initialize(handle); }

void cmpv_terminate_destroy(mpv_handle *handle) { loaded_terminate_destroy(handle); }

int cmpv_set_option_string(mpv_handle *handle, const char *name, const char *value) {
    return loaded_set_option_string(handle, name, value);
}

int cmpv_command_async(mpv_handle *handle, uint64_t reply, const char **arguments) {
    return loaded_command_async(handle, reply, arguments);
}

int cmpv_get_property(mpv_handle *handle, const char *name, mpv_format format, void *data) {
    return loaded_get_property(handle, name, format, data);
}

char *cmpv_get_property_string(mpv_handle *handle, const char *name) { return loaded_get_property_string(handle, name); }

void cmpv_free(void *data) { loaded_free(data); }

int cmpv_set_property_async(mpv_handle *handle, uint64_t reply, const char *name, mpv_format format, void *data) {
    return loaded_set_property_async(handle, reply, name, format, data);
}

int cmpv_observe_property(mpv_handle *handle, uint64_t reply, const char *name, mpv_format format) {
    return loaded_observe_property(handle, reply, name, format);
}

mpv_event *cmpv_wait_event(mpv_handle *handle, double timeout) { return loaded_wait_event(handle, timeout); }

void cmpv_wakeup(mpv_handle *handle) { loaded_wakeup(handle); }

const char *cmpv_error_string(int error) { return loaded_error_string == NULL ? NULL : loaded_error_string(error); }

int cmpv_stream_cb_add_ro(mpv_handle *handle, const char *scheme, void *data, mpv_stream_cb_open_ro_fn open) {
    return loaded_stream_cb_add_ro(handle, scheme, data, open);
}
