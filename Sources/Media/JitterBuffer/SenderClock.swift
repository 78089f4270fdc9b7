/// The clock of a sender's timestamps, learnt where it is not the codec's: Opus stamped by 480 or 160 for 20 ms, G.722 by 320.
/// Otherwise a lost packet would look like a stream without a gap, or each packet like a pause.
///
/// It is learnt from `packets` equal steps in a row, if they fit the time between the packets less than the packets' durations
/// do. 40 octets.
struct SenderClock {
  /// The clock is the codec's own.
  private(set) var isUsual = true
  /// `duration` units of the codec's clock are `step` of the sender's.
  private var duration: Int64 = 1
  private var step: Int64 = 1
  private var seen: Int64 = 0
  private var run: Int64 = 0
  private var since: Int64 = 0
  private static let packets: Int64 = 8

  // HOT
  @inline(__always) func units(_ stamps: Int64) -> Int64 { isUsual ? stamps : stamps &* duration / step }

  /// Numbers or lengths were not those of a steady stream.
  @inline(__always) mutating func interrupt() { run = 0 }

  /// Handles a step that is not the packet's duration; `arrival` on the codec's clock. True: the clock has changed.
  @inline(never) mutating func learn(step: Int64, duration: Int64, arrival: Int64) -> Bool {
    guard step > 0, duration > 0 else {
      run = 0
      return false
    }
    if run == 0 || step != seen { (seen, run, since) = (step, 0, arrival) }
    run &+= 1
    guard run > Self.packets else { return false }
    run = 0
    let elapsed = arrival &- since
    let (lasted, claimed) = (Self.packets &* duration, Self.packets &* units(step))
    let isWhole = max(step, duration) % min(step, duration) == 0
    guard isWhole, (elapsed &- lasted).magnitude < (elapsed &- claimed).magnitude else { return false }
    (self.step, self.duration, isUsual) = (step, duration, step == duration)
    return true
  }
}
