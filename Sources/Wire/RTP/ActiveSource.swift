public import TrunklineBytes

/// Selects the one of several sources (SSRCs) on a leg that is played. Two may send at once, such as a music server beside the
/// telephone that it took the call from: only one of them is played, complete, and the caller counts the other one's packets.
///
/// | packet | condition | verdict |
/// |---|---|---|
/// | the first | – | `began` |
/// | from the present source | – | `active` |
/// | from another | signalling has released the present one less than a second ago | `began` |
/// | from another | the present one has been silent for 100 ms | `began` |
/// | from another, the third in a row | the present one is overdue by more than its recent gaps | `began` |
/// | from another | else | `inactive` |
///
/// A value of 64 octets; `admit` allocates nothing and takes some nanoseconds. One thread at a time.
public struct ActiveSource: Sendable {
  public enum Verdict: Sendable, Equatable { case active, began, inactive }

  public private(set) var current: SSRC?
  private var lastReceived = Instant.zero
  /// The longest recent gap between two of its packets, in nanoseconds.
  private var longestGap: Int64 = 0
  private var rival: SSRC?
  /// Consecutive packets of the rival since the last of the present source.
  private var run = 0
  private var releasedUntil = Instant.zero
  private static let silence: Int64 = 100_000_000
  private static let margin: Int64 = 10_000_000
  private static let rivalPackets = 3

  public init() {}

  // HOT
  public mutating func admit(_ source: SSRC, at now: Instant) -> Verdict {
    let quiet = (now - lastReceived).nanoseconds
    if source == current {
      longestGap = max(min(quiet, Self.silence), longestGap &- longestGap >> 4)
      lastReceived = now
      run = 0
      return .active
    }
    return judge(source, quiet, at: now)
  }

  @inline(never) private mutating func judge(_ source: SSRC, _ quiet: Int64, at now: Instant) -> Verdict {
    if current != nil, quiet < Self.silence, now >= releasedUntil {
      run = rival == source ? run &+ 1 : 1
      rival = source
      guard run >= Self.rivalPackets, quiet >= min(Self.silence, 2 &* longestGap &+ Self.margin) else { return .inactive }
    }
    current = source
    rival = nil
    run = 0
    lastReceived = now
    longestGap = 0
    releasedUntil = .zero
    return .began
  }

  /// Signalling announced that the media may change: another source is accepted at once.
  public mutating func release(at now: Instant) { releasedUntil = now + .seconds(1) }
}
