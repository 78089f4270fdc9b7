import AudioCodecs
import Bytes
import MediaSession
import RTP

/// Puts the frames of both sides of a call onto one time line: pairs of 20 ms, side by side as they were heard.
///
/// Each side's frames lie one behind the other as long as they are within `Limits.slotsOff` of their time: ticks wander. A gap that is
/// longer is silence. A pair is complete when both sides have it, or one is `Limits.slotsAhead` further.
struct TwoChannels {
  /// Of both; frames of the other band are converted.
  let band: AudioBand
  private let start: Instant
  private var sides: [Side]
  /// Pairs that were given out.
  private(set) var slots = 0
  /// Frames that came for a time that was given out already, or twice.
  private(set) var droppedFrames = 0

  fileprivate struct Side {
    /// The slot behind the last frame.
    var next = 0
    var frames: [Int: [Int16]] = [:]
    var interpolator = BandInterpolator()
    var lastBand: AudioBand?
  }

  /// Of the first frame.
  init(_ frame: TappedFrame) {
    (band, start) = (frame.band, frame.at)
    sides = [Side(), Side()]
  }

  /// Channel 0 is what the trunk says, channel 1 what it hears.
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

  /// Hands out complete pairs, samples interleaved, and silence for what neither side has had long before `now`; at the end (nil), all.
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
