#if os(iOS) || APPLE_SURFACE
  import AudioToolbox

  /// One run of the unit, and the memory of its thread: two rings and one buffer. The callbacks allocate, lock and log nothing.
  final class VoiceRender {
    private let unit: AudioUnit
    private let captured: AudioRing
    private let played: AudioRing
    /// The buffer that AudioUnitRender writes: it holds the most frames of a slice.
    private let samples: UnsafeMutableBufferPointer<Int16>
    private static let framesPerSlice = 4_096
    // elements of an I/O unit: 1 is the microphone, 0 the loudspeaker
    private static let (microphone, loudspeaker) = (AudioUnitElement(1), AudioUnitElement(0))

    /// Nil: the system has no such unit.
    init?(_ captured: AudioRing, _ played: AudioRing) {
      var description = AudioComponentDescription(
        componentType: kAudioUnitType_Output, componentSubType: kAudioUnitSubType_VoiceProcessingIO,
        componentManufacturer: kAudioUnitManufacturer_Apple, componentFlags: 0, componentFlagsMask: 0)
      var made: AudioUnit?
      guard let component = AudioComponentFindNext(nil, &description), AudioComponentInstanceNew(component, &made) == noErr,
        let made
      else { return nil }
      (unit, self.captured, self.played) = (made, captured, played)
      samples = .allocate(capacity: Self.framesPerSlice)
      samples.initialize(repeating: 0)
    }

    deinit { samples.deallocate() }

    /// False: the unit refused; it is disposed of.
    func start() -> Bool {
      // 16-bit mono at the rings' rate; the unit converts
      var format = AudioStreamBasicDescription(
        mSampleRate: Double(AudioHandle.sampleRateHz), mFormatID: kAudioFormatLinearPCM,
        mFormatFlags: kAudioFormatFlagIsSignedInteger | kAudioFormatFlagIsPacked, mBytesPerPacket: 2, mFramesPerPacket: 1,
        mBytesPerFrame: 2, mChannelsPerFrame: 1, mBitsPerChannel: 16, mReserved: 0)
      var (on, off) = (UInt32(1), UInt32(0))
      let context = Unmanaged.passUnretained(self).toOpaque()
      var input = AURenderCallbackStruct(inputProc: Self.input, inputProcRefCon: context)
      var output = AURenderCallbackStruct(inputProc: Self.output, inputProcRefCon: context)
      let isSet =
        set(kAudioOutputUnitProperty_EnableIO, kAudioUnitScope_Input, Self.microphone, &on)
        && set(kAudioUnitProperty_StreamFormat, kAudioUnitScope_Output, Self.microphone, &format)
        && set(kAudioUnitProperty_StreamFormat, kAudioUnitScope_Input, Self.loudspeaker, &format)
        && set(kAudioUnitProperty_ShouldAllocateBuffer, kAudioUnitScope_Output, Self.microphone, &off)
        && set(kAudioOutputUnitProperty_SetInputCallback, kAudioUnitScope_Global, Self.microphone, &input)
        && set(kAudioUnitProperty_SetRenderCallback, kAudioUnitScope_Input, Self.loudspeaker, &output)
      guard isSet, AudioUnitInitialize(unit) == noErr, AudioOutputUnitStart(unit) == noErr else {
        end()
        return false
      }
      return true
    }

    /// Call it once, and last: no callback comes after the stop has returned.
    func end() {
      AudioOutputUnitStop(unit)
      AudioUnitUninitialize(unit)
      AudioComponentInstanceDispose(unit)
    }

    private func set<Value: BitwiseCopyable>(
      _ property: AudioUnitPropertyID, _ scope: AudioUnitScope, _ element: AudioUnitElement, _ value: inout Value
    ) -> Bool {
      AudioUnitSetProperty(unit, property, scope, element, &value, UInt32(MemoryLayout<Value>.size)) == noErr
    }

    // MARK: the unit's thread

    // HOT
    private static let input: AURenderCallback = { context, flags, time, _, frames, _ in
      Unmanaged<VoiceRender>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.capture(flags, time, frames) }
    }
    private static let output: AURenderCallback = { context, _, _, _, _, buffers in
      Unmanaged<VoiceRender>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.play(buffers) }
    }

    private func capture(
      _ flags: UnsafeMutablePointer<AudioUnitRenderActionFlags>, _ time: UnsafePointer<AudioTimeStamp>, _ frames: UInt32
    ) -> OSStatus {
      guard frames <= samples.count else { return kAudioUnitErr_TooManyFramesToProcess }
      var buffers = AudioBufferList(
        mNumberBuffers: 1,
        mBuffers: AudioBuffer(mNumberChannels: 1, mDataByteSize: frames * 2, mData: UnsafeMutableRawPointer(samples.baseAddress)))
      let status = AudioUnitRender(unit, flags, time, Self.microphone, frames, &buffers)
      if status == noErr { captured.write(UnsafeMutableBufferPointer(rebasing: samples[..<Int(frames)]).span) }
      return status
    }

    /// Plays the samples that are ready, then silence.
    private func play(_ buffers: UnsafeMutablePointer<AudioBufferList>?) -> OSStatus {
      guard let buffer = buffers?.pointee.mBuffers, let data = buffer.mData else { return noErr }
      let room = UnsafeMutableBufferPointer(
        start: data.assumingMemoryBound(to: Int16.self), count: Int(buffer.mDataByteSize) / 2)
      let ready = min(room.count, played.count)
      var filled = UnsafeMutableBufferPointer(rebasing: room[..<ready]).mutableSpan
      played.read(into: &filled)
      room[ready...].update(repeating: 0)
      return noErr
    }
  }
#endif
