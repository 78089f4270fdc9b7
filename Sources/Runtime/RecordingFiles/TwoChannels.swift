import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession
import TrunklineRTP

/// Aligns the frames of both sides of a call on one time line, in pairs of 20 ms.
///
/// A side's frames follow each other without a gap as long as they are within `Limits.slotsOff` of their time, because ticks
/// wander. A longer gap becomes silence. A pair is complete when both sides have it, or when one side is `Limits.slotsAhead`
/// further.
struct TwoChannels {
  /// The band of both channels; frames of the other band are converted.
  let band: AudioBand
  private let start: Instant
  private var sides: [Side]
  /// Pairs handed out so far.
  private(set) var slots = 0
  /// Frames whose slot was already handed out, or that were too far ahead.
  private(set) var droppedFrames = 0

  fileprivate struct Side {
    /// The slot after the last frame.
    var next = 0
    var frames: [Int: [Int16]] = [:]
    var interpolator = BandInterpolator()
    var lastBand: AudioBand?
  }

  /// The first frame sets the band and the start.
  init(_ frame: TappedFrame) {
    (band, start) = (frame.band, frame.at)
    sides = [Side(), Side()]
  }

  /// Channel 0 is the audio from the trunk, channel 1 the audio to it.
  mutating func add(_ frame: TappedFrame, _ samples: UnsafePointer<Int16>) {
    let side = frame.direction == .trunkToApp ? 0 : 1
    let due = Int((frame.at - start).nanoseconds / Frame.nanoseconds)
    var slot = sides[side].next
    if due - slot >= Limits.slotsOff || slot == 0 { slot = max(slot, due) }
    guard slot - due <= Limits.slotsOff, slot >= slots, slot - slots < Limits.slots else {
      droppedFrames += 1
      return
    }
    sides[side].frames[slot] = sides[side].converted(samples, frame.band, to: band)
    sides[side].next = slot + 1
  }

  /// Hands out complete pairs, with interleaved samples, and silence for slots that neither side filled long before `now`; at the
  /// end (`now` is nil), all.
  mutating func pop(at now: Instant?, _ body: ([Int16]) -> Void) {
    let silent = now.map { Int(($0 - start).nanoseconds / Frame.nanoseconds) - Limits.slotsSilent } ?? 0
    let most = max(sides[0].next, sides[1].next, silent)
    while slots < most {
      let isComplete = sides.allSatisfy { $0.next > slots }
      guard isComplete || now == nil || most - slots > Limits.slotsAhead else { return }
      let (left, right) = (sides[0].frames.removeValue(forKey: slots), sides[1].frames.removeValue(forKey: slots))
      var pair = [Int16](repeating: 0, count: 2 * band.samplesPerTick)
      for index in 0..<band.samplesPerTick {
        if let left { pair[2 * index] = left[index] }
        if let right { pair[2 * index + 1] = right[index] }
      }
      body(pair)
      slots += 1
    }
  }

  private enum Frame { static let nanoseconds: Int64 = 20_000_000 }
}

extension TwoChannels.Side {
  fileprivate mutating func converted(_ samples: UnsafePointer<Int16>, _ from: AudioBand, to band: AudioBand) -> [Int16] {
    guard from != band else { return Array(UnsafeBufferPointer(start: samples, count: band.samplesPerTick)) }
    if lastBand != from { (interpolator, lastBand) = (BandInterpolator(), from) }
    return [Int16](unsafeUninitializedCapacity: band.samplesPerTick) { room, count in
      guard let base = room.baseAddress else { return }
      count = interpolator.convert(samples, from.samplesPerTick, from: from, to: band, into: base)
    }
  }
}
