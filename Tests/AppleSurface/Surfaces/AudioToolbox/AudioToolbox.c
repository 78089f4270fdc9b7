// A unit without sound, for the programs of the suite: it calls the callbacks when it is told to, and keeps what was set.
#include "AudioToolbox.h"
#include "Unit.h"
#include <string.h>

static struct {
  int made, disposed, initialized, running;
  AURenderCallbackStruct input, output;
  AudioStreamBasicDescription captured, played;
  uint32_t isInputOn, allocates;
  int refusals;
} unit;

static int16_t microphone[8192];
static int16_t loudspeaker[8192];

void surface_unit_refuse(int calls) { unit.refusals = calls; }
int surface_unit_made(void) { return unit.made; }
int surface_unit_disposed(void) { return unit.disposed; }
int surface_unit_running(void) { return unit.running; }
int16_t *surface_unit_microphone(void) { return microphone; }
int16_t *surface_unit_loudspeaker(void) { return loudspeaker; }

static int is_format(AudioStreamBasicDescription f) {
  return f.mSampleRate == 16000 && f.mFormatID == kAudioFormatLinearPCM && f.mBytesPerFrame == 2 && f.mChannelsPerFrame == 1
    && f.mBitsPerChannel == 16 && f.mFormatFlags == (kAudioFormatFlagIsSignedInteger | kAudioFormatFlagIsPacked);
}

int surface_unit_tick(uint32_t frames) {
  if (!unit.running) return -1;
  AudioUnitRenderActionFlags flags = 0;
  AudioTimeStamp time = {0, 0};
  OSStatus status = unit.input.inputProc(unit.input.inputProcRefCon, &flags, &time, 1, frames, NULL);
  memset(loudspeaker, 0x55, sizeof loudspeaker);
  AudioBufferList list = {1, {{1, frames * 2, loudspeaker}}};
  OSStatus other = unit.output.inputProc(unit.output.inputProcRefCon, &flags, &time, 0, frames, &list);
  return status != noErr ? status : other;
}

static OSStatus answer(void) { return unit.refusals > 0 && --unit.refusals == 0 ? -1 : noErr; }

AudioComponent AudioComponentFindNext(AudioComponent inComponent, const AudioComponentDescription *inDesc) {
  int isVoice = inDesc->componentType == kAudioUnitType_Output && inDesc->componentSubType == kAudioUnitSubType_VoiceProcessingIO
    && inDesc->componentManufacturer == kAudioUnitManufacturer_Apple;
  return isVoice ? (AudioComponent)&unit : NULL;
}
OSStatus AudioComponentInstanceNew(AudioComponent inComponent, AudioComponentInstance *outInstance) {
  int refusals = unit.refusals, made = unit.made, disposed = unit.disposed;
  memset(&unit, 0, sizeof unit);
  unit.refusals = refusals, unit.made = made + 1, unit.disposed = disposed, unit.allocates = 1;
  *outInstance = (AudioComponentInstance)&unit;
  return noErr;
}
OSStatus AudioComponentInstanceDispose(AudioComponentInstance inInstance) {
  unit.running = 0;
  unit.disposed += 1;
  return noErr;
}
OSStatus AudioUnitSetProperty(
    AudioUnit inUnit, AudioUnitPropertyID inID, AudioUnitScope inScope, AudioUnitElement inElement, const void *inData,
    uint32_t inDataSize) {
  OSStatus status = answer();
  if (status != noErr) return status;
  if (unit.initialized) return -10849;
  int isIn = inScope == kAudioUnitScope_Input, isOut = inScope == kAudioUnitScope_Output;
  if (inID == kAudioOutputUnitProperty_EnableIO && isIn && inElement == 1) memcpy(&unit.isInputOn, inData, inDataSize);
  else if (inID == kAudioUnitProperty_StreamFormat && isOut && inElement == 1) memcpy(&unit.captured, inData, inDataSize);
  else if (inID == kAudioUnitProperty_StreamFormat && isIn && inElement == 0) memcpy(&unit.played, inData, inDataSize);
  else if (inID == kAudioUnitProperty_ShouldAllocateBuffer && isOut && inElement == 1) memcpy(&unit.allocates, inData, inDataSize);
  else if (inID == kAudioOutputUnitProperty_SetInputCallback && inScope == kAudioUnitScope_Global) memcpy(&unit.input, inData, inDataSize);
  else if (inID == kAudioUnitProperty_SetRenderCallback && isIn && inElement == 0) memcpy(&unit.output, inData, inDataSize);
  else return -10879;
  return noErr;
}
OSStatus AudioUnitInitialize(AudioUnit inUnit) {
  OSStatus status = answer();
  int isWhole = unit.isInputOn && !unit.allocates && is_format(unit.captured) && is_format(unit.played) && unit.input.inputProc
    && unit.output.inputProc;
  unit.initialized = status == noErr && isWhole;
  return unit.initialized ? noErr : -1;
}
OSStatus AudioUnitUninitialize(AudioUnit inUnit) {
  unit.initialized = 0;
  return noErr;
}
OSStatus AudioOutputUnitStart(AudioUnit ci) {
  OSStatus status = answer();
  unit.running = status == noErr && unit.initialized;
  return unit.running ? noErr : -1;
}
OSStatus AudioOutputUnitStop(AudioUnit ci) {
  unit.running = 0;
  return noErr;
}
OSStatus AudioUnitRender(
    AudioUnit inUnit, AudioUnitRenderActionFlags *ioActionFlags, const AudioTimeStamp *inTimeStamp, uint32_t inOutputBusNumber,
    uint32_t inNumberFrames, AudioBufferList *ioData) {
  if (inOutputBusNumber != 1 || ioData->mBuffers[0].mDataByteSize != inNumberFrames * 2) return -50;
  memcpy(ioData->mBuffers[0].mData, microphone, inNumberFrames * 2);
  return noErr;
}
