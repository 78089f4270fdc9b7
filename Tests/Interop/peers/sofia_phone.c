// Sofia-SIP (NUA and SOA), the stack of FreeSWITCH, as a telephone or a PBX's stack: calls or is called, and does by the clock of its call what
// --do says: hold resume update reinvite digits:12# (RTP) info:1 refer:sip:… end, each @seconds since the call is confirmed.
//
//     sofia_phone --port 5080 --call 'sip:+15551230001@127.0.0.1:5060' --do 'hold@2 resume@4 digits:42#@5 end@8'
//
// Sofia-SIP has no media of its own. The RTP here is PCMU in packets of 20 ms with telephone-event (RFC 4733): it plays --play, a WAV file of
// 8 kHz, from the first media on and writes what it hears into --record. With --registrar it registers first. Prints one JSON object a line;
// ends after --calls calls. The options and events are those of pjsip_phone.py.
// cc -o sofia_phone sofia_phone.c $(pkg-config --cflags --libs sofia-sip-ua) -pthread
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef struct call call_t;
#define NUA_HMAGIC_T call_t
#define SU_ROOT_MAGIC_T void
#include <sofia-sip/nua.h>
#include <sofia-sip/sdp.h>
#include <sofia-sip/sip_header.h>
#include <sofia-sip/sip_status.h>
#include <sofia-sip/soa.h>
#include <sofia-sip/soa_tag.h>

enum { PACKET = 160, RATE = 8000, EVENT_PACKETS = 8, GAP_PACKETS = 4, LATE = RATE / 5, JUMP = RATE };

static struct {
  int port, media, calls;
  const char *transport, *address, *number, *registrar, *user, *password, *call, *play, *record, *steps;
  double seconds;
} options = {.calls = 1, .transport = "udp", .address = "127.0.0.1", .number = "+15559990001", .registrar = "", .user = "",
             .password = "", .call = "", .play = "", .record = "", .steps = "", .seconds = 60};

// A call's RTP, by a thread of its own: packets leave at the clock's pace whatever the signalling does.
typedef struct {
  pthread_mutex_t lock;
  pthread_t thread;
  int fd, port;
  bool stop, sends, hears, started;
  struct sockaddr_in remote;
  int event_out, event_in;
  uint32_t ssrc, timestamp;
  uint16_t sequence;
  char digits[64];
  int event_packet;
  uint32_t event_timestamp;
  int16_t *said;
  size_t said_count, said_next;
  int16_t *heard;
  size_t heard_count, heard_room;
  double began;
  bool has_base;
  uint32_t base, heard_ssrc, last_event;
  bool has_event;
  uint16_t highest;
  uint32_t counted;
  unsigned sent, received, late, lost;
} media_t;

struct call {
  call_t *next;
  nua_handle_t *nh;
  int number;
  bool confirmed, over;
  double confirmed_at;
  char *plan;  // what is left of --do
  media_t media;
};

static su_root_t *root;
static nua_t *nua;
static call_t *calls;
static int made, left;
static bool ends, whole, asked_to_end;
static double deadline;

static double now(void) {
  struct timespec it;
  clock_gettime(CLOCK_MONOTONIC, &it);
  return it.tv_sec + it.tv_nsec / 1e9;
}

// `more`: printf for the fields behind the time, each with a comma before it. Words of the peer have no quotes in them.
static void say(const char *event, const char *more, ...) {
  struct timespec it;
  clock_gettime(CLOCK_REALTIME, &it);
  char line[2048];
  int length = snprintf(line, sizeof line, "{\"event\": \"%s\", \"at\": %lld", event, (long long)it.tv_sec * 1000 + it.tv_nsec / 1000000);
  va_list list;
  va_start(list, more);
  vsnprintf(line + length, sizeof line - length, more, list);
  va_end(list);
  for (char *at = line + length; *at; at++)
    if (*at == '\n' || *at == '\\') *at = ' ';
  printf("%s}\n", line);
  fflush(stdout);
}

// MARK: G.711 µ-law and WAV

static uint8_t encoded(int16_t sample) {
  int value = sample, sign = 0;
  if (value < 0) value = -value, sign = 0x80;
  if (value > 32635) value = 32635;
  value += 0x84;
  int exponent = 7;
  for (int mask = 0x4000; exponent > 0 && !(value & mask); mask >>= 1) exponent--;
  return (uint8_t)~(sign | exponent << 4 | (value >> (exponent + 3) & 0x0f));
}

static int16_t decoded(uint8_t code) {
  code = (uint8_t)~code;
  int value = ((((code & 0x0f) << 3) + 0x84) << ((code & 0x70) >> 4)) - 0x84;
  return (int16_t)(code & 0x80 ? -value : value);
}

// Mono, 16 bit, 8 kHz, 44 bytes of header.
static void load(media_t *it, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    say("fault", ", \"error\": \"cannot read %s\"", path);
    return;
  }
  fseek(file, 0, SEEK_END);
  long size = ftell(file) - 44;
  fseek(file, 44, SEEK_SET);
  if (size > 0 && (it->said = malloc((size_t)size))) it->said_count = fread(it->said, 2, (size_t)size / 2, file);
  fclose(file);
}

static void store(const media_t *it, const char *path) {
  FILE *file = fopen(path, "wb");
  if (!file) return;
  uint32_t bytes = (uint32_t)(it->heard_count * 2), words[] = {36 + bytes, 16, 1 | 1 << 16, RATE, 2 * RATE, 2 | 16 << 16, bytes};
  fwrite("RIFF", 1, 4, file), fwrite(words, 4, 1, file), fwrite("WAVEfmt ", 1, 8, file);
  fwrite(words + 1, 4, 5, file), fwrite("data", 1, 4, file), fwrite(words + 6, 4, 1, file);
  fwrite(it->heard, 2, it->heard_count, file);
  fclose(file);
}

// MARK: RTP

static const char DIGITS[] = "0123456789*#ABCD";

static void put16(uint8_t *at, uint32_t value) { at[0] = (uint8_t)(value >> 8), at[1] = (uint8_t)value; }
static void put32(uint8_t *at, uint32_t value) { put16(at, value >> 16), put16(at + 2, value); }
static uint32_t get32(const uint8_t *at) { return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]; }

static void send_packet(media_t *it, int type, bool marker, uint32_t timestamp, const uint8_t *payload, size_t count) {
  uint8_t packet[12 + PACKET] = {0x80, (uint8_t)(type | (marker ? 0x80 : 0))};
  put16(packet + 2, it->sequence++);
  put32(packet + 4, timestamp), put32(packet + 8, it->ssrc);
  memcpy(packet + 12, payload, count);
  if (sendto(it->fd, packet, 12 + count, 0, (struct sockaddr *)&it->remote, sizeof it->remote) > 0) it->sent++;
}

// One packet of a digit in place of audio; the end goes three times (RFC 4733 section 2.5.1.4).
static bool send_digit(media_t *it) {
  if (!it->digits[0]) return false;
  if (it->event_packet < EVENT_PACKETS) {
    if (it->event_packet == 0) it->event_timestamp = it->timestamp;
    bool last = it->event_packet == EVENT_PACKETS - 1;
    const char *digit = strchr(DIGITS, it->digits[0]);
    uint8_t event[4] = {(uint8_t)(digit ? digit - DIGITS : 0), (uint8_t)(last ? 0x8a : 0x0a)};
    put16(event + 2, (uint32_t)(it->event_packet + 1) * PACKET);
    for (int copies = last ? 3 : 1; copies > 0; copies--)
      send_packet(it, it->event_out, it->event_packet == 0, it->event_timestamp, event, sizeof event);
  } else if (it->event_packet == EVENT_PACKETS + GAP_PACKETS) {
    memmove(it->digits, it->digits + 1, strlen(it->digits));
    it->event_packet = 0;
    return false;
  }
  bool isEvent = it->event_packet++ < EVENT_PACKETS;
  return isEvent;
}

static void send_next(media_t *it) {
  uint8_t payload[PACKET];
  if (!(it->event_out >= 0 && send_digit(it))) {
    for (int i = 0; i < PACKET; i++) payload[i] = encoded(it->said_next < it->said_count ? it->said[it->said_next++] : 0);
    send_packet(it, 0, it->sent == 0, it->timestamp, payload, PACKET);
  }
}

static void hear_audio(media_t *it, uint32_t timestamp, uint32_t ssrc, const uint8_t *payload, size_t count) {
  int64_t here = (int64_t)((now() - it->began) * RATE);
  int64_t at = (int64_t)(int32_t)(timestamp - it->base);
  // Another stream, or one that went on elsewhere, is heard from now on.
  if (!it->has_base || ssrc != it->heard_ssrc || at - here > JUMP || here - at > JUMP)
    it->base = timestamp - (uint32_t)here, it->heard_ssrc = ssrc, it->has_base = true, at = here;
  // As with a jitter buffer of 200 ms: what comes later is not heard.
  if (at < 0 || here - at > LATE) {
    it->late++;
    return;
  }
  size_t end = (size_t)at + count;
  if (end > it->heard_room) {
    size_t room = end * 2 + RATE * 10;
    int16_t *more = realloc(it->heard, room * sizeof *more);
    if (!more) return;
    memset(more + it->heard_room, 0, (room - it->heard_room) * sizeof *more);
    it->heard = more, it->heard_room = room;
  }
  for (size_t i = 0; i < count; i++) it->heard[(size_t)at + i] = decoded(payload[i]);
  if (end > it->heard_count) it->heard_count = end;
}

// Packets whose numbers are missing (RFC 3550 appendix A.3); one that comes behind a later one is not.
static void count_number(media_t *it, uint16_t number, uint32_t ssrc) {
  int step = it->received > 0 && ssrc == it->counted ? (int16_t)(number - it->highest) : 1;
  if (step > 1) it->lost += (unsigned)step - 1;
  if (step < 0 && it->lost > 0) it->lost--;
  if (step > 0) it->highest = number;
  it->counted = ssrc;
  it->received++;
}

static void hear(media_t *it, const uint8_t *packet, size_t size) {
  if (size < 12 || packet[0] >> 6 != 2) return;
  size_t head = 12 + 4 * (size_t)(packet[0] & 0x0f);
  if (size <= head) return;
  int type = packet[1] & 0x7f;
  uint32_t timestamp = get32(packet + 4);
  count_number(it, (uint16_t)(packet[2] << 8 | packet[3]), get32(packet + 8));
  if (type == it->event_in && size >= head + 4) {
    if (it->has_event && timestamp == it->last_event) return;
    it->has_event = true, it->last_event = timestamp;
    if (packet[head] < sizeof DIGITS - 1) say("digit", ", \"digit\": \"%c\", \"way\": \"rtp\"", DIGITS[packet[head]]);
  } else if (type == 0 && it->hears) {
    hear_audio(it, timestamp, get32(packet + 8), packet + head, size - head);
  }
}

static void *run_media(void *given) {
  media_t *it = given;
  double next = now();
  for (;;) {
    double wait = next - now();
    struct pollfd polled = {it->fd, POLLIN, 0};
    int ready = wait > 0 ? poll(&polled, 1, (int)(wait * 1000) + 1) : 0;
    uint8_t packet[2048];
    ssize_t size = ready > 0 ? recv(it->fd, packet, sizeof packet, MSG_DONTWAIT) : 0;
    pthread_mutex_lock(&it->lock);
    if (size > 0) hear(it, packet, (size_t)size);
    for (; now() >= next; next += PACKET / (double)RATE) {
      if (it->sends) send_next(it);
      it->timestamp += PACKET;
    }
    bool stop = it->stop;
    pthread_mutex_unlock(&it->lock);
    if (stop) return NULL;
  }
}

static bool open_media(media_t *it, int port) {
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  socklen_t length = sizeof own;
  inet_pton(AF_INET, options.address, &own.sin_addr);
  it->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (bind(it->fd, (struct sockaddr *)&own, sizeof own) || getsockname(it->fd, (struct sockaddr *)&own, &length)) return false;
  it->port = ntohs(own.sin_port);
  it->event_out = it->event_in = -1;
  uint32_t seed[3];
  if (getentropy(seed, sizeof seed)) return false;
  it->ssrc = seed[0], it->timestamp = seed[1], it->sequence = (uint16_t)seed[2];
  pthread_mutex_init(&it->lock, NULL);
  if (*options.play) load(it, options.play);
  return true;
}

static void close_media(call_t *it) {
  media_t *media = &it->media;
  if (media->started) {
    pthread_mutex_lock(&media->lock);
    media->stop = true;
    pthread_mutex_unlock(&media->lock);
    pthread_join(media->thread, NULL);
  }
  close(media->fd);
  say("counts", ", \"call\": %d, \"sent\": %u, \"received\": %u, \"late\": %u, \"lost\": %u", it->number, media->sent, media->received, media->late,
      media->lost);
  if (*options.record && it->number == 1) store(media, options.record);
}

static int event_type(const sdp_media_t *it) {
  for (const sdp_rtpmap_t *map = it ? it->m_rtpmaps : NULL; map; map = map->rm_next)
    if (map->rm_encoding && !strcasecmp(map->rm_encoding, "telephone-event")) return (int)map->rm_pt;
  return -1;
}

// A state brings the side that has just come, an offer or an answer. `active`: what SOA says of the audio.
static void set_media(call_t *call, const sdp_session_t *local, const sdp_session_t *remote, int active) {
  media_t *it = &call->media;
  const sdp_media_t *ours = local ? local->sdp_media : NULL, *theirs = remote ? remote->sdp_media : NULL;
  const sdp_connection_t *connection = theirs ? sdp_media_connections(theirs) : NULL;
  if (!ours && !theirs) return;
  pthread_mutex_lock(&it->lock);
  if (ours) it->event_in = event_type(ours);
  if (theirs) {
    it->event_out = event_type(theirs);
    it->remote.sin_family = AF_INET;
    it->remote.sin_port = htons((uint16_t)theirs->m_port);
    if (!connection || inet_pton(AF_INET, connection->c_address, &it->remote.sin_addr) != 1) it->remote.sin_addr.s_addr = 0;
  }
  it->sends = it->remote.sin_addr.s_addr && it->remote.sin_port && active > 0 && (active & SOA_ACTIVE_SENDONLY);
  bool hears = active > 0 && (active & SOA_ACTIVE_RECVONLY);
  if (hears && !it->hears) it->has_base = false;  // what comes after a hold is heard when it comes
  it->hears = hears;
  bool flows = it->remote.sin_port && active > 0;
  pthread_mutex_unlock(&it->lock);
  say("media", ", \"direction\": %d, \"event\": %d", active, it->event_out);
  if (!it->started && flows) {
    it->began = now();
    it->started = pthread_create(&it->thread, NULL, run_media, it) == 0;
  }
}

// MARK: calls

static call_t *new_call(nua_handle_t *nh) {
  call_t *it = calloc(1, sizeof *it);
  it->number = ++made;
  if (!open_media(&it->media, it->number == 1 ? options.media : 0)) {
    say("fault", ", \"error\": \"no port for RTP\"");
    exit(1);
  }
  it->nh = nh;
  it->next = calls, calls = it;
  char sdp[256];
  snprintf(sdp, sizeof sdp,
           "m=audio %d RTP/AVP 0 101\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=ptime:20\r\n",
           it->media.port);
  nua_handle_bind(nh, it);
  nua_set_hparams(nh, SOATAG_USER_SDP_STR(sdp), SOATAG_ADDRESS(options.address), SOATAG_AUDIO_AUX("telephone-event"),
                  SOATAG_RTP_SELECT(SOA_RTP_SELECT_COMMON), TAG_END());
  return it;
}

// NUA keeps what a call ends with to itself but for the phrase of its last state.
static void end_call(call_t *it, int code, const char *phrase) {
  if (it->over) return;
  it->over = true;
  close_media(it);
  say("over", ", \"call\": %d, \"code\": %d, \"reason\": \"%s\"", it->number, code, phrase ? phrase : "");
  if (--left == 0) ends = whole = true;
}

static void authenticate(nua_handle_t *nh, const sip_t *sip) {
  const msg_auth_t *asked = sip->sip_www_authenticate ? sip->sip_www_authenticate : sip->sip_proxy_authenticate;
  const char *realm = asked ? msg_params_find(asked->au_params, "realm=") : NULL;
  char words[512];
  if (!realm || !*options.user) return;
  snprintf(words, sizeof words, "%s:%s:%s:%s", asked->au_scheme, realm, options.user, options.password);
  nua_authenticate(nh, NUTAG_AUTH(words), TAG_END());
}

static void place_call(void) {
  char to[512];
  snprintf(to, sizeof to, "%s%s", options.call, !strcmp(options.transport, "tcp") ? ";transport=tcp" : "");
  nua_handle_t *nh = nua_handle(nua, NULL, NUTAG_URL(to), SIPTAG_TO_STR(options.call), TAG_END());
  new_call(nh);
  nua_invite(nh, TAG_END());
}

static void do_step(call_t *it, char *what) {
  say("do", ", \"what\": \"%s\"", what);
  char *argument = strchr(what, ':');
  if (argument) *argument++ = 0;
  if (!strcmp(what, "hold")) {
    nua_invite(it->nh, SOATAG_HOLD("audio"), TAG_END());
  } else if (!strcmp(what, "resume")) {
    nua_invite(it->nh, SOATAG_HOLD(""), TAG_END());
  } else if (!strcmp(what, "reinvite")) {
    nua_invite(it->nh, TAG_END());
  } else if (!strcmp(what, "update")) {
    nua_update(it->nh, TAG_END());
  } else if (!strcmp(what, "digits") && argument) {
    pthread_mutex_lock(&it->media.lock);
    strncat(it->media.digits, argument, sizeof it->media.digits - strlen(it->media.digits) - 1);
    pthread_mutex_unlock(&it->media.lock);
  } else if (!strcmp(what, "info") && argument) {
    char body[64];
    snprintf(body, sizeof body, "Signal=%c\r\nDuration=160\r\n", *argument);
    nua_info(it->nh, SIPTAG_CONTENT_TYPE_STR("application/dtmf-relay"), SIPTAG_PAYLOAD_STR(body), TAG_END());
  } else if (!strcmp(what, "refer") && argument) {
    nua_refer(it->nh, SIPTAG_REFER_TO_STR(argument), TAG_END());
  } else if (!strcmp(what, "end")) {
    nua_bye(it->nh, TAG_END());
  } else {
    say("fault", ", \"error\": \"no such step: %s\"", what);
  }
}

static void tick(void *magic, su_timer_t *timer, su_timer_arg_t *arg) {
  (void)magic, (void)timer, (void)arg;
  for (call_t *it = calls; it; it = it->next) {
    while (it->confirmed && !it->over && it->plan && *it->plan) {
      char step[256] = "";
      size_t length = strcspn(it->plan, " ");
      snprintf(step, sizeof step, "%.*s", (int)length, it->plan);
      char *at = strrchr(step, '@');
      if (at && now() - it->confirmed_at < atof(at + 1)) break;
      if (at) *at = 0;
      it->plan += length + (it->plan[length] == ' ');
      do_step(it, step);
    }
  }
  if (now() > deadline) ends = true;
  // What is left to send leaves by itself: NUA says when it is done.
  if (ends && !asked_to_end) asked_to_end = true, nua_shutdown(nua);
}

// MARK: events of NUA

static void on_state(call_t *it, int code, const char *phrase, tagi_t tags[]) {
  int state = 0, active = SOA_ACTIVE_DISABLED;
  const sdp_session_t *local = NULL, *remote = NULL;
  tl_gets(tags, NUTAG_CALLSTATE_REF(state), SOATAG_ACTIVE_AUDIO_REF(active), SOATAG_LOCAL_SDP_REF(local), SOATAG_REMOTE_SDP_REF(remote),
          TAG_END());
  say("state", ", \"state\": \"%s\", \"code\": %d", nua_callstate_name(state), code);
  if (state == nua_callstate_terminated) {
    end_call(it, code, phrase);
    return;
  }
  set_media(it, local, remote, active);
  if (state == nua_callstate_ready && !it->confirmed) {
    it->confirmed = true, it->confirmed_at = now();
    // Of the first call alone: what a transfer brings is only answered.
    it->plan = it->number == 1 ? strdup(options.steps) : NULL;
    say("confirmed", ", \"call\": %d", it->number);
  }
}

static void on_response(call_t *it, const char *what, int code, const char *phrase, nua_handle_t *nh, const sip_t *sip) {
  (void)it;
  if ((code == 401 || code == 407) && sip && *options.user)
    authenticate(nh, sip);
  else if (code >= 300)
    say("refused", ", \"what\": \"%s\", \"code\": %d, \"error\": \"%s\"", what, code, phrase);
}

static void on_notify(call_t *it, const sip_t *sip) {
  const char *body = sip && sip->sip_payload ? sip->sip_payload->pl_data : NULL;
  int code = 0;
  if (!it || !body || sscanf(body, "SIP/2.0 %d", &code) != 1) return;
  const sip_subscription_state_t *state = sip->sip_subscription_state;
  bool final = state && state->ss_substate && !strcasecmp(state->ss_substate, "terminated");
  say("transfer", ", \"code\": %d, \"final\": %s", code, final ? "true" : "false");
  if (final && code / 100 == 2) nua_bye(it->nh, TAG_END());
}

static void on_event(nua_event_t event, int code, char const *phrase, nua_t *agent, nua_magic_t *magic, nua_handle_t *nh, call_t *it,
                     sip_t const *sip, tagi_t tags[]) {
  (void)agent, (void)magic;
  switch (event) {
  case nua_i_invite:
    if (it) break;
    it = new_call(nh);
    say("incoming", ", \"sender\": \"" URL_PRINT_FORMAT "\"", URL_PRINT_ARGS(sip->sip_from->a_url));
    nua_respond(nh, SIP_180_RINGING, TAG_END());
    nua_respond(nh, SIP_200_OK, TAG_END());
    break;
  case nua_i_state:
    if (it) on_state(it, code, phrase, tags);
    break;
  case nua_i_notify:
    on_notify(it, sip);
    break;
  case nua_i_info:
    if (sip && sip->sip_payload) {
      char *signal = strcasestr(sip->sip_payload->pl_data, "signal=");
      if (signal) say("digit", ", \"digit\": \"%c\", \"way\": \"info\"", signal[7]);
    }
    break;
  case nua_r_register:
    if (code == 401 || code == 407)
      on_response(it, "register", code, phrase, nh, sip);
    else if (code >= 200)
      say("registered", ", \"code\": %d", code);
    if (code / 100 == 2 && *options.call && !made) place_call();
    break;
  case nua_r_invite:
    on_response(it, "invite", code, phrase, nh, sip);
    break;
  case nua_r_update:
    on_response(it, "update", code, phrase, nh, sip);
    break;
  case nua_r_refer:
    on_response(it, "refer", code, phrase, nh, sip);
    break;
  case nua_r_info:
    on_response(it, "info", code, phrase, nh, sip);
    break;
  case nua_r_bye:
    // NUA's own words are above 699: the other side's BYE was first.
    if (code < 700) on_response(it, "bye", code, phrase, nh, sip);
    break;
  case nua_r_shutdown:
    if (code >= 200) su_root_break(root);
    break;
  case nua_i_error:
    say("fault", ", \"error\": \"%d %s\"", code, phrase);
    break;
  default:
    break;
  }
}

static void parse(int count, char **words) {
  enum { PORT = 1, MEDIA, TRANSPORT, ADDRESS, NUMBER, REGISTRAR, USER, PASSWORD, CALL, PLAY, RECORD, DO, CALLS, SECONDS };
  static const struct option names[] = {
      {"port", 1, 0, PORT},           {"media", 1, 0, MEDIA},       {"transport", 1, 0, TRANSPORT}, {"address", 1, 0, ADDRESS},
      {"number", 1, 0, NUMBER},       {"registrar", 1, 0, REGISTRAR}, {"user", 1, 0, USER},
      {"password", 1, 0, PASSWORD},   {"call", 1, 0, CALL},         {"play", 1, 0, PLAY},           {"record", 1, 0, RECORD},
      {"do", 1, 0, DO},               {"calls", 1, 0, CALLS},       {"seconds", 1, 0, SECONDS},     {0}};
  for (int name; (name = getopt_long(count, words, "", names, NULL)) != -1;) {
    switch (name) {
    case PORT: options.port = atoi(optarg); break;
    case MEDIA: options.media = atoi(optarg); break;
    case TRANSPORT: options.transport = optarg; break;
    case ADDRESS: options.address = optarg; break;
    case NUMBER: options.number = optarg; break;
    case REGISTRAR: options.registrar = optarg; break;
    case USER: options.user = optarg; break;
    case PASSWORD: options.password = optarg; break;
    case CALL: options.call = optarg; break;
    case PLAY: options.play = optarg; break;
    case RECORD: options.record = optarg; break;
    case DO: options.steps = optarg; break;
    case CALLS: options.calls = atoi(optarg); break;
    case SECONDS: options.seconds = atof(optarg); break;
    default: exit(2);
    }
  }
}

int main(int count, char **words) {
  parse(count, words);
  bool tcp = !strcmp(options.transport, "tcp");
  const char *suffix = tcp ? ";transport=tcp" : "";
  char own[256], from[256], to[512];
  snprintf(own, sizeof own, "sip:%s:%d;transport=%s", options.address, options.port, options.transport);
  left = options.calls, deadline = now() + options.seconds;
  su_init();
  root = su_root_create(NULL);
  // A registered telephone is its registrar's, any other its own.
  const char *host = *options.registrar ? strchr(options.registrar, ':') + 1 : NULL;
  if (host) snprintf(from, sizeof from, "sip:%s@%s", options.number, host);
  else snprintf(from, sizeof from, "sip:%s@%s:%d", options.number, options.address, options.port);
  nua = nua_create(root, on_event, NULL, NUTAG_URL(own), SIPTAG_FROM_STR(from), NUTAG_M_USERNAME(options.number),
                   NUTAG_AUTOANSWER(0), NUTAG_AUTOALERT(0), NUTAG_ENABLEMESSAGE(0), NUTAG_OUTBOUND("no-natify no-validate"),
                   NUTAG_ALLOW("REFER, NOTIFY, INFO, UPDATE, PRACK"), NUTAG_USER_AGENT("sofia-sip"), TAG_END());
  if (!nua) {
    say("fault", ", \"error\": \"NUA does not start\"");
    return 1;
  }
  say("listening", "");
  if (*options.registrar) {
    snprintf(to, sizeof to, "%s%s", options.registrar, suffix);
    nua_handle_t *nh = nua_handle(nua, NULL, SIPTAG_TO_STR(from), TAG_END());
    nua_register(nh, NUTAG_REGISTRAR((url_string_t *)to), TAG_END());
  }
  if (*options.call && !*options.registrar) place_call();
  su_timer_t *timer = su_timer_create(su_root_task(root), 20);
  su_timer_set_for_ever(timer, tick, NULL);
  su_root_run(root);
  say("done", ", \"whole\": %s", whole ? "true" : "false");
  return whole ? 0 : 1;
}
