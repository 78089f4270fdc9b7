#pragma once
#include <libwebsockets.h>
// Function-like macros and mixed-type constants, which Swift does not import.
static inline size_t clws_pre(void) { return LWS_PRE; }
static inline uint64_t clws_option_disable_ipv6(void) { return LWS_SERVER_OPTION_DISABLE_IPV6; }
static inline uint64_t clws_option_tls(void) { return LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT; }
static inline uint64_t clws_option_fail_unbound(void) { return LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND; }
static inline uint64_t clws_option_explicit_vhosts(void) { return LWS_SERVER_OPTION_EXPLICIT_VHOSTS; }
// Versions below 1.2 off: SSL_OP_NO_TLSv1 and SSL_OP_NO_TLSv1_1 of OpenSSL 3, whose headers this shim does not need otherwise.
static inline long clws_tls12_and_up(void) { return (1L << 26) | (1L << 28); }
static inline void clws_timeout_user(struct lws *wsi, int seconds) { lws_set_timeout(wsi, PENDING_TIMEOUT_USER_REASON_BASE, seconds); }
static inline void clws_timeout_content(struct lws *wsi, int seconds) { lws_set_timeout(wsi, PENDING_TIMEOUT_HTTP_CONTENT, seconds); }
static inline void clws_quiet(void) { lws_set_log_level(0, NULL); }

// A timer that makes lws_service return. lws runs a ripe timer's callback before it polls and then may sleep without end, so the
// callback itself must leave something to wake up for.
struct clws_timer {
  lws_sorted_usec_list_t sul;  // first, so that a pointer to it is a pointer to the timer
  struct lws_context *context;
};
static inline void clws_timer_fired(lws_sorted_usec_list_t *sul) { lws_cancel_service(((struct clws_timer *)sul)->context); }
static inline void clws_timer_start(struct clws_timer *timer, struct lws_context *context, int64_t microseconds) {
  timer->context = context;
  lws_sul_schedule(context, 0, &timer->sul, clws_timer_fired, microseconds);
}
static inline void clws_timer_stop(struct clws_timer *timer) { lws_sul_cancel(&timer->sul); }
