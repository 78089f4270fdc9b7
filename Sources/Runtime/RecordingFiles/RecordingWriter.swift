import CallModel
import Glibc
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession
import TrunklinePlatform
import TrunklineRTP

/// One recording that is being written.
struct RecordingWriter: ~Copyable {
  let recording: CallRecording
  private let format: RecordingRules.Format
  private let path: String
  private var file: OutputFile
  private var channels: TwoChannels?
  private var ogg: OggOpusStream?
  private var slots = 0
  private var slotsUnwritten = 0

  /// Makes the file; throws if the file system refuses.
  init(_ recording: CallRecording, folder: String) throws(SystemError) {
    self.recording = recording
    path = folder + "/" + recording.file
    format = recording.file.hasSuffix(".wav") ? .wav : .ogg
    file = try OutputFile(path: path)
  }

  /// Reads the new frames of the tap, and writes the file when a write is due. Throws when the disk refuses it.
  mutating func step(at now: Instant?) throws(SystemError) {
    for _ in 0..<Limits.framesPerStep {
      // Locals, as the closure cannot change the recording whose tap is read.
      var popped: (TappedFrame, [Int16])?
      guard
        recording.tap.pop({ frame, samples in
          popped = (frame, Array(UnsafeBufferPointer(start: samples, count: frame.band.samplesPerTick)))
        }), let (frame, samples) = popped
      else { break }
      if channels == nil { begin(frame) }
      samples.withUnsafeBufferPointer { if let base = $0.baseAddress { channels?.add(frame, base) } }
    }
    var pairs: [[Int16]] = []
    channels?.pop(at: now) { pairs.append($0) }
    for pair in pairs { write(pair) }
    if file.gatheredCount >= Limits.writtenBytes || slotsUnwritten >= Limits.writtenSlots {
      slotsUnwritten = 0
      try file.flush()
    }
  }

  private mutating func begin(_ first: TappedFrame) {
    channels = TwoChannels(first)
    switch format {
    case .wav: file.append(WAVFormat.header(rateHz: first.band.sampleRateHz, dataBytes: 0))
    case .ogg:
      // libopus refuses only wrong parameters, and ours are constant
      ogg = try? OggOpusStream(first.band, serial: UInt32(truncatingIfNeeded: recording.call.low))
      if let header = ogg?.header() { file.append(header) }
    }
  }

  private mutating func write(_ pair: [Int16]) {
    slots += 1
    slotsUnwritten += 1
    switch format {
    case .wav: file.append(WAVFormat.octets(pair))
    case .ogg: if let page = ogg?.add(pair) { file.append(page) }
    }
  }

  /// Closes the file with the frames that it has, and gives it its final name.
  mutating func finish(_ end: RecordingReport.End) -> RecordingReport {
    var end = end
    do throws(SystemError) {
      if end == .diskFull || end == .failed {
        try close()
      } else {
        try step(at: nil)
        if let last = ogg?.end() { file.append(last) }
        try file.flush()
        try close()
      }
    } catch {
      end = error.isDiskFull ? .diskFull : .failed
      try? close()
    }
    let dropped = recording.tap.dropped + (channels?.droppedFrames ?? 0)
    return RecordingReport(
      recording.facts, file: recording.file, end: end, milliseconds: slots * 20, bytes: file.count, dropped: dropped)
  }

  private mutating func close() throws(SystemError) {
    if let channels, format == .wav {
      let whole = max(0, file.count - WAVFormat.headerBytes) / 4 * 4
      file.cut(to: WAVFormat.headerBytes + whole)
      try file.overwrite(WAVFormat.header(rateHz: channels.band.sampleRateHz, dataBytes: whole), at: 0)
    }
    try file.finish()
  }
}

extension SystemError {
  var isDiskFull: Bool { code == ENOSPC || code == EDQUOT || code == EFBIG }
}
