#pragma once
// SHA1_Init and its kin are deprecated in 3.0 but allocate nothing per packet (docs/design/srtp.md): no warning wanted.
#define OPENSSL_SUPPRESS_DEPRECATED
// The framework of OpenSSL-Package spells its headers so.
#if defined(__APPLE__) || defined(TRUNKLINE_APPLE_HEADERS)
#include <OpenSSL/ssl.h>
#include <OpenSSL/err.h>
#include <OpenSSL/evp.h>
#include <OpenSSL/hmac.h>
#include <OpenSSL/rand.h>
#include <OpenSSL/sha.h>
#include <OpenSSL/md5.h>
#include <OpenSSL/x509.h>
#include <OpenSSL/x509v3.h>
#include <OpenSSL/ec.h>
#include <OpenSSL/ecdsa.h>
#include <OpenSSL/bn.h>
#include <OpenSSL/pem.h>
#include <OpenSSL/srtp.h>
#include <OpenSSL/core_names.h>
#include <OpenSSL/param_build.h>
#include <OpenSSL/crypto.h>
#else
#include <openssl/ssl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/md5.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/bn.h>
#include <openssl/pem.h>
#include <openssl/srtp.h>
#include <openssl/core_names.h>
#include <openssl/param_build.h>
#include <openssl/crypto.h>
#endif
#include <sys/time.h>
// Macros and variadic functions, which Swift does not import.
static inline EVP_PKEY *cossl_ec_p256_generate(void) { return EVP_EC_gen("P-256"); }
static inline long cossl_set_mtu(SSL *s, long mtu) { return SSL_set_mtu(s, mtu); }
static inline long cossl_dtls_get_timeout(SSL *s, struct timeval *tv) { return DTLSv1_get_timeout(s, tv); }
static inline long cossl_dtls_handle_timeout(SSL *s) { return DTLSv1_handle_timeout(s); }
static inline long cossl_set_min_proto_version(SSL_CTX *c, int v) { return SSL_CTX_set_min_proto_version(c, v); }
static inline long cossl_set1_groups_list(SSL_CTX *c, const char *l) { return SSL_CTX_set1_groups_list(c, l); }
static inline void cossl_set_read_ahead(SSL_CTX *c, int on) { SSL_CTX_set_read_ahead(c, on); }
static inline uint64_t cossl_op_no_query_mtu(void) { return SSL_OP_NO_QUERY_MTU; }
static inline uint64_t cossl_op_no_renegotiation(void) { return SSL_OP_NO_RENEGOTIATION; }
static inline uint64_t cossl_op_no_ticket(void) { return SSL_OP_NO_TICKET; }
static inline uint64_t cossl_op_cookie_exchange(void) { return SSL_OP_COOKIE_EXCHANGE; }
static inline long cossl_bio_set_mem_eof_return(BIO *b, long v) { return BIO_set_mem_eof_return(b, (int)v); }
static inline size_t cossl_bio_pending(BIO *b) { return (size_t)BIO_pending(b); }
static inline long cossl_set_session_cache_off(SSL_CTX *c) { return SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF); }
static inline long cossl_set_release_buffers(SSL_CTX *c) { return SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS); }
// For a stream of one's own: what the kernel does not take is offered again, from wherever the buffer is then.
static inline long cossl_set_stream_writes(SSL_CTX *c) {
  return SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}
// ALPN of a server that speaks HTTP/1.1 only (RFC 7301): chosen if offered; a client that offers others only gets the alert.
static int cossl_alpn_choose_http11(SSL *s, const unsigned char **out, unsigned char *count, const unsigned char *in, unsigned int length, void *x) {
  static const unsigned char ours[] = "\x08http/1.1";
  (void)s; (void)x;
  int found = SSL_select_next_proto((unsigned char **)out, count, ours, sizeof ours - 1, in, length);
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}
static inline void cossl_alpn_http11(SSL_CTX *c) { SSL_CTX_set_alpn_select_cb(c, cossl_alpn_choose_http11, NULL); }
static inline long cossl_bio_reset(BIO *b) { return BIO_reset(b); }
static inline long cossl_bio_memory(BIO *b, char **p) { return BIO_get_mem_data(b, p); }
static inline long cossl_set_server_name(SSL *s, const char *name) { return SSL_set_tlsext_host_name(s, name); }
// Called with the SSL of a handshake whose hello is read, and with `table`.
static inline void cossl_set_server_name_callback(SSL_CTX *c, int (*callback)(SSL *, int *, void *), void *table) {
  SSL_CTX_set_tlsext_servername_callback(c, callback);
  SSL_CTX_set_tlsext_servername_arg(c, table);
}
static inline int cossl_add_subject_names(X509 *certificate, const char *names) {
  X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names);
  if (extension == NULL) return 0;
  int added = X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
  return added;
}
