import AudioCodecs
import Bytes
import RTP
import Testing

@testable import MediaSession

/// Bad packets in the middle of speech, through the whole session and both ways: they are counted, nothing that the other side
/// hears is more than 3 dB above the loudest 20 ms of the source in the 200 ms before, both streams go on, and speech is back
/// within 200 ms.
@Suite struct HostileLevelTests {
  enum Direction: CaseIterable { case trunkToApp, appToTrunk }
  enum Kind: CaseIterable {
    case randomPayload, randomLength, text, empty, lyingPadding, lyingExtension, otherAudio, unknownType, noiseType, eventType,
      timestampAnywhere, timestampBack, timestampStill, otherSource, sequenceJump, everything
  }

  /// Frames among which bad packets come in place of good ones, and all frames.
  private static let hostile = 60..<150
  private static let frames = 260
  /// What a path adds in steps of 5 ms: coding, its look-ahead, a frame that waits, and what the jitter buffer may wait for.
  private static let delay = 24

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
      // Zero, more than there is, or so much that only a part of the audio is left.
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
      // Nothing is sent in a pause or while a digit is.
      let new = direction == .trunkToApp ? bench.heardByApp[before...] : bench.heardByTrunk[before...]
      heard += new.isEmpty ? quiet : Array(new)
    }
    #expect(bench.toApp.isContinuous && bench.toTrunk.isContinuous)
    let statistics = bench.session.statistics()
    let stream = direction == .trunkToApp ? statistics.fromTrunk : statistics.fromApp
    var counted = stream.lost + stream.playout.damaged + stream.playout.limited + stream.playout.resynchronised
    counted += stream.playout.outOfRange + stream.playout.noiseMilliseconds
    for reason in MediaDrop.allCases { counted += bench.output.takeDrops(reason) }
    return (heard, bad, counted)
  }

  @Test(arguments: Direction.allCases, Kind.allCases)
  func `bad packets in speech are no burst, and speech is back within 200 ms`(_ direction: Direction, _ kind: Kind) throws {
    let good = NoiseBurstTests.windowLevels(try Self.run(direction, nil, seed: 1).heard)
    var counted: UInt64 = 0
    for seed in 1...2 { counted += try Self.check(direction, kind, seed: UInt64(seed), good) }
    // Some of what is no louder than the speech is played.
    #expect(counted > 0, "\(direction) \(kind)")
  }

  private static func check(_ direction: Direction, _ kind: Kind, seed: UInt64, _ good: [(power: Double, peak: Double)]) throws
    -> UInt64
  {
    let source = NoiseBurstTests.windowLevels(Array(speech.prefix(frames).joined()))
    let (samples, bad, counted) = try run(direction, kind, seed: seed)
    let heard = NoiseBurstTests.windowLevels(samples)
    #expect(bad > 10)
    for index in heard.indices {
      var (power, peak) = (1.1e4, 330.0)  // −50 dBov
      for before in max(0, index - 40 - delay)...max(0, min(source.count - 1, index)) {
        power = max(power, source[before].power)
        peak = max(peak, source[before].peak)
      }
      let place = "\(direction) \(kind) seed \(seed), 5 ms number \(index)"
      #expect(heard[index].power < 2 * power && heard[index].peak < 1.42 * peak, "\(place): \(heard[index]) of \((power, peak))")
    }
    // 200 ms after the last bad packet, half a second is as loud as without them.
    let back = hostile.upperBound * 4 + 40
    let (with, without) = (heard[back..<back + 100], good[back..<back + 100])
    let ratio = with.reduce(0) { $0 + $1.power } / without.reduce(1) { $0 + $1.power }
    #expect(ratio > 0.5, "\(direction) \(kind): \(ratio) of the power is back")
    return counted
  }
}

extension Bench {
  /// A datagram made from the packet that this side would have sent.
  fileprivate mutating func sends(
    _ samples: [Int16], _ direction: HostileLevelTests.Direction, _ make: (HostileLevelTests.Parts) -> [UInt8]
  ) throws {
    let isTrunk = direction == .trunkToApp
    var payload = [UInt8](repeating: 0, count: 400)
    var span = payload.mutableSpan
    let count =
      isTrunk ? G711.encode(samples.span, law: .mu, into: &span) : try appEncoder.encode(samples.span, into: &span)
    let bytes = make(
      HostileLevelTests.Parts(
        type: isTrunk ? trunk.payloadType : app.payloadType, sequence: isTrunk ? trunkSequence : appSequence,
        timestamp: isTrunk ? trunkTimestamp : appTimestamp, source: isTrunk ? 0x1234 : 0x9999, payload: Array(payload[..<count])))
    // A number that jumps stays where it jumped to.
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
    // What no sender can protect, an extension longer than the packet, comes with a wrong tag.
    if (try? appSender.protect(room, count: &length)) == nil { length += 16 }
    appDatagram(UnsafeMutableRawBufferPointer(rebasing: room[..<length]))
  }
}
