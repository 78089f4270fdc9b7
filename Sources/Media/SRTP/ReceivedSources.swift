/// The SSRCs of one receiver. None is ever removed completely, since its packets could then be replayed.
///
/// | SSRC | kept state |
/// |---|---|
/// | one of the `Limits.sourcesReceived` most recent | highest indices and replay windows |
/// | older than those | the highest indices: packets not above them are refused |
/// | beyond `Limits.sourcesRetired` of these | none: refused as `tooManySources` |
struct ReceivedSources: ~Copyable {
  private var current: SSRCTable<Source>
  private var retired: SSRCTable<RetiredSource>
  /// Counts packets, to find the least recent source.
  private var clock: UInt32 = 0
  private var retirements: UInt64 = 0

  init(seed: UInt64) {
    current = SSRCTable(limit: Limits.sourcesReceived, seed: seed)
    retired = SSRCTable(limit: Limits.sourcesRetired, seed: seed)
  }

  /// A recent source. HOT
  @inline(__always) func find(_ ssrc: UInt32) -> UnsafeMutablePointer<Source>? { current.find(ssrc) }

  /// The kept state of an SSRC that `find` does not find; to be passed to `admit` after a tag was verified. nil: the tables are
  /// full.
  func candidate(_ ssrc: UInt32) -> Source? {
    if let former = retired.find(ssrc) { return Source(former.pointee) }
    if current.isFull, retired.isFull { return nil }
    var source = Source()
    source.ssrc = ssrc
    return source
  }

  /// Adds a candidate whose packet is authentic; if the table is full, the least recent ones are retired.
  mutating func admit(_ candidate: Source) {
    retired.remove(candidate.ssrc)
    if current.isFull { retireLeastRecent() }
    var source = candidate
    source.usedAt = nextStamp()
    _ = current.insert(source)
  }

  /// Registers an authentic packet of the source. HOT
  @inline(__always) mutating func use(_ source: UnsafeMutablePointer<Source>) { source.pointee.usedAt = nextStamp() }

  /// The highest roll-over counter of any source.
  var lastRollover: UInt64 {
    var last: UInt64 = 0
    current.forEach { last = max(last, $0.rtp.highest >> 16) }
    retired.forEach { last = max(last, $0.next >> 16) }
    return last
  }

  mutating func drainRetirements() -> UInt64 {
    defer { retirements = 0 }
    return retirements
  }

  @inline(__always) private mutating func nextStamp() -> UInt32 {
    clock = clock == .max ? 1 : clock &+ 1
    return clock
  }

  /// Retires several at a time: finding the least recent one means reading all.
  private mutating func retireLeastRecent() {
    var all: [(at: UInt32, ssrc: UInt32)] = []
    current.forEach { all.append(($0.usedAt, $0.ssrc)) }
    all.sort { $0.at < $1.at }
    for (_, ssrc) in all.prefix(Limits.sourcesRetiredAtOnce) {
      guard let source = current.find(ssrc), retired.insert(RetiredSource(source.pointee)) != nil else { return }
      current.remove(ssrc)
      retirements &+= 1
    }
  }
}

/// The packet indices of one SSRC.
struct Source: SSRCElement {
  var ssrc: UInt32 = 0
  /// The count of packets when it was last received; 0: not used.
  var usedAt: UInt32 = 0
  var rtp = IndexWindow()
  var rtcp = IndexWindow()

  init() {}
  init(_ retired: RetiredSource) {
    ssrc = retired.ssrc
    (rtp, rtcp) = (IndexWindow(next: retired.next), IndexWindow(next: UInt64(retired.nextControl)))
  }

  var isUsed: Bool { usedAt != 0 }
}

/// The kept state of a retired source: the numbers after its highest indices, 0 if it never sent.
struct RetiredSource: SSRCElement {
  private(set) var ssrc: UInt32 = 0
  private(set) var nextControl: UInt32 = 0
  private(set) var next: UInt64 = 0

  init() {}
  init(_ source: Source) {
    ssrc = source.ssrc
    next = source.rtp.isEmpty ? 0 : source.rtp.highest + 1
    nextControl = source.rtcp.isEmpty ? 0 : UInt32(truncatingIfNeeded: source.rtcp.highest) + 1
  }

  /// Whether an authentic packet created the source.
  var isUsed: Bool { next != 0 || nextControl != 0 }
}
