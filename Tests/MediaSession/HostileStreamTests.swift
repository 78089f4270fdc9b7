import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

/// Bad packets in the middle of speech, through the whole session and both ways: those that can be recognised are counted, both
/// streams continue, and speech is back within 200 ms.
@Suite struct HostileStreamTests {
  enum Direction: CaseIterable { case trunkToApp, appToTrunk }
  enum Kind: CaseIterable {
    case randomPayload, randomLength, text, empty, lyingPadding, lyingExtension, otherAudio, unknownType, noiseType, eventType,
      timestampAnywhere, timestampBack, timestampStill, otherSource, sequenceJump, everything
  }

  /// Frames in which bad packets replace good ones, and the number of all frames.
  private static let hostile = 60..<150
  private static let frames = 260
  /// A whole datagram of a kind, made of a good packet's parts.
  fileprivate static func datagram(_ kind: Kind, _ good: Parts, _ random: inout SplitMix64) -> [UInt8] {
    func octets(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) } }
    func below(_ bound: UInt64) -> Int { Int(random.next() % bound) }
    var parts = good
    switch kind {
    case .randomPayload: parts.payload = octets(good.payload.count)
    case .randomLength: parts.payload = octets(below(1_200))
    case .text: parts.payload = good.payload.map { _ in UInt8(32 + below(95)) }
    case .empty: parts.payload = []
    case .lyingPadding:
      // A padding length of zero, of more than the payload, or so large that only a part of the audio is left.
      parts.first |= 0x20
      if let last = parts.payload.indices.last { parts.payload[last] = [0, 255, UInt8(below(256))][below(3)] }
    case .lyingExtension:
      parts.first |= 0x10
      parts.payload = [0xbe, 0xde, 0, UInt8(below(60))] + good.payload
    case .otherAudio: parts.type = good.type == 0 ? 8 : 0
    case .unknownType: parts.type = 77
    case .noiseType: (parts.type, parts.payload) = (13, octets(1 + below(9)))
    case .eventType: (parts.type, parts.payload) = (good.type == 0 ? 101 : 110, octets(below(40)))
    case .timestampAnywhere: parts.timestamp = UInt32(truncatingIfNeeded: random.next())
    case .timestampBack: parts.timestamp &-= UInt32(below(500_000))
    case .timestampStill: parts.timestamp = 7
    case .otherSource: (parts.source, parts.payload) = (UInt32(below(3)), octets(good.payload.count))
    case .sequenceJump: (parts.sequence, parts.payload) = (good.sequence &+ UInt16(below(3_000)), octets(good.payload.count))
    case .everything: return datagram(Kind.allCases[below(UInt64(Kind.allCases.count - 1))], good, &random)
    }
    return parts.bytes
  }

  fileprivate struct Parts {
    var first: UInt8 = 0x80
    var type: UInt8
    var sequence: UInt16
    var timestamp: UInt32
    var source: UInt32
    var payload: [UInt8]

    var bytes: [UInt8] {
      func big(_ value: UInt32, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt32(8 * (count - 1 - $0))) }
      }
      return [first, type] + big(UInt32(sequence), 2) + big(timestamp, 4) + big(source, 4) + payload
    }
  }

  /// What the other side heard, and how many bad packets were counted.
  private static func run(_ direction: Direction, _ kind: Kind?, seed: UInt64) throws -> (
    heard: [Int16], bad: Int, counted: UInt64
  ) {
    var random = SplitMix64(seed: seed)
    var bench = try Bench()
    bench.connect()
    var (bad, heard): (Int, [Int16]) = (0, [])
    for frame in 0..<frames {
      let isBad = kind != nil && hostile.contains(frame) && random.next() % 4 == 0
      if isBad, let kind {
        bad += 1
        try bench.sends(speech[frame], direction) { datagram(kind, $0, &random) }
      } else if direction == .trunkToApp {
        bench.trunkSays(speech[frame])
      } else {
        try bench.appSays(speech[frame])
      }
      if direction == .trunkToApp { try bench.appSays(quiet) } else { bench.trunkSays(quiet) }
      let before = direction == .trunkToApp ? bench.heardByApp.count : bench.heardByTrunk.count
      bench.tick()
      // Nothing is sent in a pause or during a digit.
      let new = direction == .trunkToApp ? bench.heardByApp[before...] : bench.heardByTrunk[before...]
      heard += new.isEmpty ? quiet : Array(new)
    }
    #expect(bench.toApp.isContinuous && bench.toTrunk.isContinuous)
    let statistics = bench.session.statistics()
    let stream = direction == .trunkToApp ? statistics.fromTrunk : statistics.fromApp
    var counted = stream.lost + stream.playout.damaged + stream.playout.resynchronised
    counted += stream.playout.outOfRange + stream.playout.noiseSamples / 8
    for reason in MediaDrop.allCases { counted += bench.output.drainDrops(reason) }
    return (heard, bad, counted)
  }

  /// Octets of the right length are audio: nothing shows that they are bad.
  private static let audible: Set<Kind> = [.randomPayload, .text, .lyingPadding]

  @Test(arguments: Direction.allCases, Kind.allCases)
  func `bad packets in speech are counted, and speech is back within 200 ms`(_ direction: Direction, _ kind: Kind) throws {
    let good = try Self.run(direction, nil, seed: 1).heard
    // From 200 ms after the last bad packet, half a second is about as loud as without them; it may be a little later.
    let back = (Self.hostile.upperBound + 10) * 160
    for seed in 1...2 as ClosedRange<UInt64> {
      let (heard, bad, counted) = try Self.run(direction, kind, seed: seed)
      #expect(bad > 10)
      if !Self.audible.contains(kind) { #expect(counted > 0, "\(direction) \(kind)") }
      let ratio = level(heard[back..<back + 4_000]) / level(good[back..<back + 4_000])
      #expect(ratio > 0.5 && ratio < 2, "\(direction) \(kind): \(ratio) of the level is back")
    }
  }
}

extension Bench {
  /// Sends a datagram made from the packet that this side would have sent.
  fileprivate mutating func sends(
    _ samples: [Int16], _ direction: HostileStreamTests.Direction, _ make: (HostileStreamTests.Parts) -> [UInt8]
  ) throws {
    let isTrunk = direction == .trunkToApp
    var payload = [UInt8](repeating: 0, count: 400)
    var span = payload.mutableSpan
    let count =
      isTrunk ? G711.encode(samples.span, law: .mu, into: &span) : try appEncoder.encode(samples.span, into: &span)
    let bytes = make(
      HostileStreamTests.Parts(
        type: isTrunk ? trunk.payloadType : app.payloadType, sequence: isTrunk ? trunkSequence : appSequence,
        timestamp: isTrunk ? trunkTimestamp : appTimestamp, source: isTrunk ? 0x1234 : 0x9999, payload: Array(payload[..<count])))
    // A sequence number that jumps stays at its new value.
    let next = (UInt16(bytes[2]) << 8 | UInt16(bytes[3])) &+ 1
    if isTrunk {
      (trunkSequence, trunkTimestamp) = (next, trunkTimestamp &+ 160)
      bytes.withUnsafeBytes { session.handleTrunk($0, from: Self.trunkAddress, at: now, into: &output) }
      return collect()
    }
    (appSequence, appTimestamp) = (next, appTimestamp &+ 960)
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1_600, alignment: 8)
    defer { room.deallocate() }
    room.copyBytes(from: bytes)
    var length = bytes.count
    // What no sender can protect, an extension longer than the packet, gets a wrong tag.
    if (try? appSender.protect(room, count: &length)) == nil { length += 16 }
    appDatagram(UnsafeMutableRawBufferPointer(rebasing: room[..<length]))
  }
}
