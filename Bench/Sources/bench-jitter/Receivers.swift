import BenchKit
import JitterPeers
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineMediaSession
import TrunklineRTP

/// What a receiver reports of itself after a pull.
struct ReceiverCounts {
  /// Concealed audio since the start, in samples at 8 kHz.
  var concealed: UInt64 = 0
  /// Audio recovered from a copy in a later packet.
  var repaired: UInt64 = 0
  var shrunk: UInt64 = 0
  var grown: UInt64 = 0
  /// Packets that arrived and were not played.
  var discarded: UInt64 = 0
  /// This pull had no audio, and concealment has ended.
  var isSilent = false
  /// Position of the pull's first sample in the source, in samples at 8 kHz, as far as the receiver knows.
  var position: Double?
}

/// A packet as its sender numbered it.
struct ReplayPacket {
  var number: Int
  /// In samples at 8 kHz.
  var timestamp: Int
  /// The packet starts a talkspurt.
  var marker: Bool
}

/// A receive path under replay: packets of speech in, audio at 8 kHz out (48 kHz from NetEQ's Opus, whose clock alone is used).
protocol ReplayReceiver: AnyObject {
  var name: String { get }
  /// 20; 10 for NetEQ; the packet's length for receivers that return packets.
  var pullMilliseconds: Int { get }
  func insert(_ packet: ReplayPacket, _ payload: [UInt8], at now: Instant)
  func pull(into samples: inout [Int16], at now: Instant)
  /// Called after each pull.
  func millisecondsToNextPull(after now: Instant) -> Double
  var counts: ReceiverCounts { get }
}

/// Ticks that follow the packets' phase.
struct FollowingTicks: ~Copyable {
  private let period: Int
  private var phases: ArrivalPhase

  init(periodMilliseconds: Int) {
    period = periodMilliseconds
    phases = ArrivalPhase(periodMilliseconds: period)
  }

  mutating func arrived(at now: Instant) { phases.arrived(at: now) }

  mutating func millisecondsToNext(after now: Instant) -> Double {
    let current = phases.phase(now)
    let ahead = ((phases.verdict(current: current) ?? current) - current + period) % period
    return Double(ahead == 0 ? period : ahead)
  }
}

/// The path as RTCP reports it every 5 s: half a round trip, in which one way has the trace's delay and the other is as fast as
/// the trace's fastest packet, smoothed as in `MediaSession`.
private struct ReportedPath {
  let least: Double
  private var fastest = Double.infinity
  private var queue: Double?
  private var next = Instant(nanoseconds: 0)

  init(least: Double) { self.least = least }

  /// - Returns: mouth to ear without the buffer, in milliseconds, when a report is due.
  mutating func arrived(_ packet: ReplayPacket, at now: Instant) -> Double? {
    let transit = Double(now.nanoseconds) / 1_000_000 - Double(packet.timestamp) / 8
    fastest = min(fastest, transit)
    guard now >= next else { return nil }
    next = now + .seconds(5)
    let queue = queue.map { $0 * 0.75 + (transit - fastest) * 0.25 } ?? 0
    self.queue = queue
    return least + queue / 2
  }
}

final class OurReceiver: ReplayReceiver {
  let name = "ours"
  let pullMilliseconds = 20
  private(set) var counts = ReceiverCounts()
  private var receiver: AudioReceiver
  private var phase = TickPhase()
  private let units: Int
  private var path: ReportedPath

  /// - Parameter pathMilliseconds: the delay of the trace's fastest packet plus what is assumed for the rest of the path.
  init(_ encoding: AudioEncoding, policy: DelayPolicy, pathMilliseconds: Double) throws {
    receiver = try AudioReceiver(encoding: encoding, policy: policy)
    receiver.setPath(milliseconds: pathMilliseconds)
    path = ReportedPath(least: pathMilliseconds)
    units = Int(encoding.clockRateHz) / 50
  }

  func insert(_ packet: ReplayPacket, _ payload: [UInt8], at now: Instant) {
    let header = RTPHeader(
      payloadType: 0, marker: packet.marker, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: packet.number)),
      timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: packet.timestamp * units / 160)), ssrc: SSRC(raw: 1))
    if let path = path.arrived(packet, at: now) { receiver.setPath(milliseconds: path) }
    _ = receiver.insert(header, payload: payload.span, at: now)
  }

  func millisecondsToNextPull(after now: Instant) -> Double {
    20 + Double(phase.step(receiver.tickPreference))
  }

  func pull(into samples: inout [Int16], at now: Instant) {
    var span = samples.mutableSpan
    let result = receiver.pull(into: &span, at: now)
    let statistics = receiver.statistics
    counts.concealed = statistics.concealedSamples
    counts.repaired = statistics.repairedSamples
    (counts.shrunk, counts.grown) = (statistics.removedSamplesForAcceleration, statistics.insertedSamplesForDeceleration)
    counts.discarded = statistics.late + statistics.overflowed
    counts.isSilent = result == .silent
    // The next sample to be played, less the 160 samples just played.
    counts.position = Double(Int32(bitPattern: receiver.nextTimestamp.raw)) * 160 / Double(units) - 160
  }
}

final class NetEQReceiver: ReplayReceiver {
  let name: String
  let pullMilliseconds = 10
  private(set) var counts = ReceiverCounts()
  private let sharedStore: NetEQ
  private let units: Int
  private var room: [Int16]

  init?(_ encoding: AudioEncoding, minimumDelayMilliseconds: Int = 0) {
    guard let sharedStore = NetEQ(encoding == .opus ? .opus : .pcmu, minimumDelayMilliseconds: minimumDelayMilliseconds) else {
      return nil
    }
    name = "NetEQ"
    room = [Int16](repeating: 0, count: sharedStore.samplesPerPull)
    self.sharedStore = sharedStore
    units = Int(encoding.clockRateHz) / 50
  }

  func insert(_ packet: ReplayPacket, _ payload: [UInt8], at now: Instant) {
    sharedStore.insert(
      sequence: UInt16(truncatingIfNeeded: packet.number), timestamp: UInt32(truncatingIfNeeded: packet.timestamp * units / 160),
      payload: payload, at: now)
  }

  func millisecondsToNextPull(after now: Instant) -> Double { 10 }

  func pull(into samples: inout [Int16], at now: Instant) {
    _ = room.withUnsafeMutableBufferPointer { sharedStore.pull(into: $0, at: now) }
    let ratio = sharedStore.sampleRateHz / 8000
    for index in samples.indices { samples[index] = room[index * ratio] }
    let totals = sharedStore.totals
    let scale = UInt64(ratio)
    counts.concealed = totals.concealed / scale
    (counts.shrunk, counts.grown) = (totals.removed / scale, totals.inserted / scale)
    counts.discarded = totals.packets_discarded
    counts.position = sharedStore.playoutTimestamp.map { Double(Int32(bitPattern: $0)) * 160 / Double(units) - 80 }
  }
}

/// A packet buffer with as little as possible around it: PCMU is decoded, and missing audio is silence.
final class PacketReceiver<Buffer: PacketBuffer & ~Copyable>: ReplayReceiver {
  let name: String
  let pullMilliseconds: Int
  private(set) var counts = ReceiverCounts()
  private var buffer: Buffer
  private var ticks: FollowingTicks
  private var payload = [UInt8](repeating: 0, count: 1500)

  init(_ name: String, _ buffer: consuming Buffer, frameMilliseconds: Int) {
    self.name = name
    self.buffer = buffer
    pullMilliseconds = frameMilliseconds
    ticks = FollowingTicks(periodMilliseconds: frameMilliseconds)
  }

  func insert(_ packet: ReplayPacket, _ payload: [UInt8], at now: Instant) {
    payload.withUnsafeBufferPointer {
      buffer.put(
        sequence: UInt16(truncatingIfNeeded: packet.number), timestamp: UInt32(truncatingIfNeeded: packet.timestamp), payload: $0)
    }
    ticks.arrived(at: now)
  }

  func millisecondsToNextPull(after now: Instant) -> Double { ticks.millisecondsToNext(after: now) }

  func pull(into samples: inout [Int16], at now: Instant) {
    let found = payload.withUnsafeMutableBufferPointer { buffer.get(into: $0) }
    guard let found, found.length == samples.count else {
      counts.concealed += UInt64(samples.count)
      for index in samples.indices { samples[index] = 0 }
      return
    }
    let count = samples.count
    var span = samples.mutableSpan
    _ = G711.decode(payload.span.extracting(0..<count), law: .mu, into: &span)
    counts.position = Double(found.timestamp)
  }
}

protocol PacketBuffer: ~Copyable {
  mutating func put(sequence: UInt16, timestamp: UInt32, payload: UnsafeBufferPointer<UInt8>)
  mutating func get(into payload: UnsafeMutableBufferPointer<UInt8>) -> (timestamp: UInt32, length: Int)?
}
extension SpeexJitterBuffer: PacketBuffer {}
extension LibreJitterBuffer: PacketBuffer {}
