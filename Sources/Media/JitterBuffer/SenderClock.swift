/// How a sender stamps its packets, learnt where it is not by the codec's clock: Opus stamped by 480 or 160 for 20 ms, G.722 by 320. Else a lost packet
/// could not be told from a stream without a gap, or each packet would be a pause.
///
/// It is learnt from `packets` steps in a row that are alike and that fit the time between the packets less than what they last. 40 octets.
struct SenderClock {
  /// The codec's own.
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

  /// Takes a step that is not what the packet lasts; `arrival` on the codec's clock. True: the clock is another one from now on.
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
