#include "CDemoSpeech.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char telephone[] = {
#embed "telephone.ulaw"
};
static const unsigned char app[] = {
#embed "app.ulaw"
};

const CDemoSpeech cdemo_telephone = {telephone, sizeof telephone};
const CDemoSpeech cdemo_app = {app, sizeof app};
