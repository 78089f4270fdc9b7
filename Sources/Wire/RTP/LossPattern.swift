/// How the losses of one stream are spread: bursts and gaps as RFC 3611 §4.7.2 defines them with Gmin = 16, and G.107's burst
/// ratio.
///
/// A number is judged when 48 later ones have come, so that reordering is no loss. A packet that came too late to be played is a
/// discard and weighs like a loss. A value type of about 150 octets; a packet costs a few instructions, nothing is allocated.
///
///     pattern.received(header.sequence)
///     pattern.discarded(header.sequence)           // the jitter buffer could not use it
///     let spread = pattern.settled                 // up to the newest packet
public struct LossPattern: Sendable, Equatable {
  private static let horizon = 48
  /// Fewer good packets than this between two losses belong to a burst.
  public static let gapMinimum = 16

  // The numbers not yet judged: bit k is for `newest` − k.
  private var newest: SequenceNumber?
  private var pending = 0
  private var came: UInt64 = 0
  private var unused: UInt64 = 0

  /// Packets judged: expected, never received, received but not used.
  public private(set) var expected: UInt64 = 0
  public private(set) var lost: UInt64 = 0
  public private(set) var discards: UInt64 = 0
  // Runs of consecutive losses.
  private var runs: UInt64 = 0
  private var inRun = false
  // The growing group of losses, and the good packets behind it.
  private var groupLosses: UInt64 = 0
  private var groupPackets: UInt64 = 0
  private var goodSince: UInt64 = 0
  // Bursts that are over.
  private var bursts: UInt64 = 0
  private var burstPackets: UInt64 = 0
  private var burstLosses: UInt64 = 0

  public init() {}

  // HOT
  public mutating func received(_ sequence: SequenceNumber) {
    guard let newest else {
      self.newest = sequence
      pending = 1
      came = 1
      unused = 0
      return
    }
    let ahead = sequence.distance(from: newest)
    guard ahead > 0 else {
      if -ahead < pending { came |= 1 << UInt64(-ahead) }
      return
    }
    for _ in 0..<min(ahead, Limits.dropout) { advance() }
    came |= 1
  }

  /// The packet of this number came but could not be played.
  public mutating func discarded(_ sequence: SequenceNumber) {
    guard let newest else { return }
    let back = newest.distance(from: sequence)
    if back >= 0, back < pending { unused |= 1 << UInt64(back) }
  }

  /// Another source, or a jump of this one: what was pending is judged, and counting continues with the next packet.
  public mutating func restart() {
    settle()
    newest = nil
  }

  /// The same with every packet judged.
  public var settled: LossPattern {
    var copy = self
    copy.settle()
    return copy
  }

  private mutating func settle() {
    while pending > 0 { judgeOldest() }
  }

  private mutating func advance() {
    if pending == Self.horizon { judgeOldest() }
    newest = newest?.next
    came <<= 1
    unused <<= 1
    pending += 1
  }

  private mutating func judgeOldest() {
    let bit: UInt64 = 1 << UInt64(pending - 1)
    let isLost = came & bit == 0
    let isUnused = !isLost && unused & bit != 0
    pending -= 1
    expected &+= 1
    if isLost { lost &+= 1 }
    if isUnused { discards &+= 1 }
    guard isLost || isUnused else {
      inRun = false
      goodSince &+= 1
      return
    }
    if !inRun { runs &+= 1 }
    inRun = true
    if groupLosses > 0, goodSince < Self.gapMinimum {
      groupPackets &+= goodSince &+ 1
      groupLosses &+= 1
    } else {
      endGroup()
      groupLosses = 1
      groupPackets = 1
    }
    goodSince = 0
  }

  /// A single loss belongs to the gap around it.
  private mutating func endGroup() {
    guard groupLosses > 1 else { return }
    bursts &+= 1
    burstPackets &+= groupPackets
    burstLosses &+= groupLosses
  }

  // MARK: Results, of what was judged

  private var withGroup: (bursts: UInt64, packets: UInt64, losses: UInt64) {
    groupLosses > 1
      ? (bursts &+ 1, burstPackets &+ groupPackets, burstLosses &+ groupLosses) : (bursts, burstPackets, burstLosses)
  }

  /// Lost or discarded, 0…1.
  public var lossFraction: Double { Self.ratio(lost &+ discards, to: expected) }
  public var burstCount: UInt64 { withGroup.bursts }
  /// The part of packets inside bursts that was lost or discarded, 0…1.
  public var burstDensity: Double { Self.ratio(withGroup.losses, to: withGroup.packets) }
  /// The same between the bursts.
  public var gapDensity: Double {
    let bursts = withGroup
    return Self.ratio(lost &+ discards &- min(bursts.losses, lost &+ discards), to: expected &- min(bursts.packets, expected))
  }
  /// Mean packets of a burst; 0 without one.
  public var burstPacketsMean: Double { Self.ratio(withGroup.packets, to: withGroup.bursts) }
  /// Mean packets of a gap: before, between and after bursts.
  public var gapPacketsMean: Double {
    let bursts = withGroup
    return Self.ratio(expected &- min(bursts.packets, expected), to: bursts.bursts &+ 1)
  }
  /// ITU-T G.107 §7.3: the mean length of loss runs over that of equally much random loss; 1 without loss.
  public var burstRatio: Double { runs == 0 ? 1 : max(1, Self.ratio(lost &+ discards, to: runs) * (1 - lossFraction)) }

  private static func ratio(_ a: UInt64, to b: UInt64) -> Double { b == 0 ? 0 : Double(a) / Double(b) }
}
