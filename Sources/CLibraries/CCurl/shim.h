#pragma once
#include <curl/curl.h>
// curl_easy_setopt, curl_easy_getinfo and their multi kin are variadic, which Swift does not import: one function per kind of argument.
static inline CURLcode ccurl_set_long(CURL *c, CURLoption o, long v) { return curl_easy_setopt(c, o, v); }
static inline CURLcode ccurl_set_text(CURL *c, CURLoption o, const char *v) { return curl_easy_setopt(c, o, v); }
static inline CURLcode ccurl_set_list(CURL *c, CURLoption o, struct curl_slist *v) { return curl_easy_setopt(c, o, v); }
static inline CURLcode ccurl_set_pointer(CURL *c, CURLoption o, const void *v) { return curl_easy_setopt(c, o, v); }
static inline CURLcode ccurl_set_write(CURL *c, size_t (*f)(char *, size_t, size_t, void *)) { return curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, f); }
static inline CURLcode ccurl_set_sockopt(CURL *c, int (*f)(void *, curl_socket_t, curlsocktype)) { return curl_easy_setopt(c, CURLOPT_SOCKOPTFUNCTION, f); }
static inline CURLcode ccurl_set_prerequest(CURL *c, int (*f)(void *, char *, char *, int, int)) { return curl_easy_setopt(c, CURLOPT_PREREQFUNCTION, f); }
static inline CURLcode ccurl_get_long(CURL *c, CURLINFO i, long *v) { return curl_easy_getinfo(c, i, v); }
static inline CURLcode ccurl_get_text(CURL *c, CURLINFO i, char **v) { return curl_easy_getinfo(c, i, v); }
static inline CURLcode ccurl_get_offset(CURL *c, CURLINFO i, curl_off_t *v) { return curl_easy_getinfo(c, i, v); }
static inline CURLcode ccurl_get_pointer(CURL *c, void **v) { return curl_easy_getinfo(c, CURLINFO_PRIVATE, (char **)v); }
static inline CURLMcode ccurl_multi_set_long(CURLM *m, CURLMoption o, long v) { return curl_multi_setopt(m, o, v); }
static inline CURLMcode ccurl_multi_set_pointer(CURLM *m, CURLMoption o, void *v) { return curl_multi_setopt(m, o, v); }
static inline CURLMcode ccurl_multi_set_socket(CURLM *m, int (*f)(CURL *, curl_socket_t, int, void *, void *)) { return curl_multi_setopt(m, CURLMOPT_SOCKETFUNCTION, f); }
static inline CURLMcode ccurl_multi_set_timer(CURLM *m, int (*f)(CURLM *, long, void *)) { return curl_multi_setopt(m, CURLMOPT_TIMERFUNCTION, f); }
// A union.
static inline CURLcode ccurl_message_result(const CURLMsg *m) { return m->data.result; }
