#pragma once
#include <libwebsockets.h>
// Function-like macros and mixed-type constants, which Swift does not import.
static inline size_t clws_pre(void) { return LWS_PRE; }
static inline uint64_t clws_option_security_headers(void) { return LWS_SERVER_OPTION_HTTP_HEADERS_SECURITY_BEST_PRACTICES_ENFORCE; }
