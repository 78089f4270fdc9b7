// What the SDK uses of AudioToolbox, by its C interface. Each declaration names the header of the iOS SDK that it is from.
#pragma once
#include <stdint.h>
#pragma clang assume_nonnull begin

/// MacTypes.h
typedef int32_t OSStatus;
/// MacTypes.h
enum : OSStatus { noErr = 0 };

/// CoreAudioTypes/CoreAudioBaseTypes.h
typedef uint32_t AudioFormatID;
/// CoreAudioTypes/CoreAudioBaseTypes.h
typedef uint32_t AudioFormatFlags;
/// CoreAudioTypes/CoreAudioBaseTypes.h
enum : AudioFormatID { kAudioFormatLinearPCM = 0x6c70636d };  // 'lpcm'
/// CoreAudioTypes/CoreAudioBaseTypes.h
enum : AudioFormatFlags { kAudioFormatFlagIsSignedInteger = 1U << 2, kAudioFormatFlagIsPacked = 1U << 3 };
/// CoreAudioTypes/CoreAudioBaseTypes.h
typedef struct AudioStreamBasicDescription {
  double mSampleRate;
  AudioFormatID mFormatID;
  AudioFormatFlags mFormatFlags;
  uint32_t mBytesPerPacket;
  uint32_t mFramesPerPacket;
  uint32_t mBytesPerFrame;
  uint32_t mChannelsPerFrame;
  uint32_t mBitsPerChannel;
  uint32_t mReserved;
} AudioStreamBasicDescription;
/// CoreAudioTypes/CoreAudioBaseTypes.h
typedef struct AudioBuffer {
  uint32_t mNumberChannels;
  uint32_t mDataByteSize;
  void *_Nullable mData;
} AudioBuffer;
/// CoreAudioTypes/CoreAudioBaseTypes.h
typedef struct AudioBufferList {
  uint32_t mNumberBuffers;
  AudioBuffer mBuffers[1];
} AudioBufferList;
/// CoreAudioTypes/CoreAudioBaseTypes.h: shortened, nothing of it is read
typedef struct AudioTimeStamp {
  double mSampleTime;
  uint64_t mHostTime;
} AudioTimeStamp;

/// AudioToolbox/AudioComponent.h
typedef struct OpaqueAudioComponent *AudioComponent;
/// AudioToolbox/AudioComponent.h
typedef struct OpaqueAudioComponentInstance *AudioComponentInstance;
/// AudioToolbox/AudioComponent.h
typedef struct AudioComponentDescription {
  uint32_t componentType;
  uint32_t componentSubType;
  uint32_t componentManufacturer;
  uint32_t componentFlags;
  uint32_t componentFlagsMask;
} AudioComponentDescription;
/// AudioToolbox/AudioComponent.h
AudioComponent _Nullable AudioComponentFindNext(AudioComponent _Nullable inComponent, const AudioComponentDescription *inDesc);
/// AudioToolbox/AudioComponent.h
OSStatus AudioComponentInstanceNew(AudioComponent inComponent, AudioComponentInstance _Nullable *_Nonnull outInstance);
/// AudioToolbox/AudioComponent.h
OSStatus AudioComponentInstanceDispose(AudioComponentInstance inInstance);

/// AudioToolbox/AUComponent.h
typedef AudioComponentInstance AudioUnit;
/// AudioToolbox/AUComponent.h
typedef uint32_t AudioUnitPropertyID;
/// AudioToolbox/AUComponent.h
typedef uint32_t AudioUnitScope;
/// AudioToolbox/AUComponent.h
typedef uint32_t AudioUnitElement;
/// AudioToolbox/AUComponent.h: an option set; nothing of it is read
typedef enum AudioUnitRenderActionFlags : uint32_t { kAudioUnitRenderAction_OutputIsSilence = 1U << 4 } AudioUnitRenderActionFlags;
/// AudioToolbox/AUComponent.h
enum : uint32_t { kAudioUnitType_Output = 0x61756f75 };  // 'auou'
/// AudioToolbox/AUComponent.h
enum : uint32_t { kAudioUnitSubType_VoiceProcessingIO = 0x7670696f };  // 'vpio'
/// AudioToolbox/AUComponent.h
enum : uint32_t { kAudioUnitManufacturer_Apple = 0x6170706c };  // 'appl'
/// AudioToolbox/AUComponent.h
enum : OSStatus { kAudioUnitErr_TooManyFramesToProcess = -10874 };
/// AudioToolbox/AUComponent.h
typedef OSStatus (*AURenderCallback)(
    void *inRefCon, AudioUnitRenderActionFlags *ioActionFlags, const AudioTimeStamp *inTimeStamp, uint32_t inBusNumber,
    uint32_t inNumberFrames, AudioBufferList *_Nullable ioData);
/// AudioToolbox/AUComponent.h
OSStatus AudioUnitInitialize(AudioUnit inUnit);
/// AudioToolbox/AUComponent.h
OSStatus AudioUnitUninitialize(AudioUnit inUnit);
/// AudioToolbox/AUComponent.h
OSStatus AudioUnitSetProperty(
    AudioUnit inUnit, AudioUnitPropertyID inID, AudioUnitScope inScope, AudioUnitElement inElement,
    const void *_Nullable inData, uint32_t inDataSize);
/// AudioToolbox/AUComponent.h
OSStatus AudioUnitRender(
    AudioUnit inUnit, AudioUnitRenderActionFlags *_Nullable ioActionFlags, const AudioTimeStamp *inTimeStamp,
    uint32_t inOutputBusNumber, uint32_t inNumberFrames, AudioBufferList *ioData);

/// AudioToolbox/AudioUnitProperties.h
enum : AudioUnitScope { kAudioUnitScope_Global = 0, kAudioUnitScope_Input = 1, kAudioUnitScope_Output = 2 };
/// AudioToolbox/AudioUnitProperties.h
enum : AudioUnitPropertyID {
  kAudioUnitProperty_StreamFormat = 8,
  kAudioUnitProperty_SetRenderCallback = 23,
  kAudioUnitProperty_ShouldAllocateBuffer = 51,
  kAudioOutputUnitProperty_EnableIO = 2003,
  kAudioOutputUnitProperty_SetInputCallback = 2005,
};
/// AudioToolbox/AudioUnitProperties.h
typedef struct AURenderCallbackStruct {
  AURenderCallback _Nullable inputProc;
  void *_Nullable inputProcRefCon;
} AURenderCallbackStruct;

/// AudioToolbox/AudioOutputUnit.h
OSStatus AudioOutputUnitStart(AudioUnit ci);
/// AudioToolbox/AudioOutputUnit.h
OSStatus AudioOutputUnitStop(AudioUnit ci);

#pragma clang assume_nonnull end
