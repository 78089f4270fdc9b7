#pragma once
#if defined(__APPLE__) || defined(TRUNKLINE_APPLE_HEADERS)
#include <opus.h>
#else
#include <opus/opus.h>
#endif
// opus_*_ctl is variadic, which Swift does not import: one typed inline per argument kind.
static inline int copus_encoder_set(OpusEncoder *e, int request, opus_int32 value) { return opus_encoder_ctl(e, request, value); }
static inline int copus_encoder_get(OpusEncoder *e, int request, opus_int32 *value) { return opus_encoder_ctl(e, request, value); }
static inline int copus_encoder_reset(OpusEncoder *e) { return opus_encoder_ctl(e, OPUS_RESET_STATE); }
static inline int copus_decoder_set(OpusDecoder *d, int request, opus_int32 value) { return opus_decoder_ctl(d, request, value); }
static inline int copus_decoder_get(OpusDecoder *d, int request, opus_int32 *value) { return opus_decoder_ctl(d, request, value); }
static inline int copus_decoder_reset(OpusDecoder *d) { return opus_decoder_ctl(d, OPUS_RESET_STATE); }
