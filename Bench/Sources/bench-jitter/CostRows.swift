import BenchKit
import JitterPeers
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineMediaSession
import TrunklineRTP

/// What the buffer and the whole receive path cost, beside the peers on the same packets at the same instants.
enum CostRows {
  static func add(to bench: Bench) throws {
    let calm = Schedule(packets: 120_000, Impairments(), seed: 7)
    let alone = try buffer(bench, "put + decide + get, packets in order", calm, isHeadline: true)
    let rough = Schedule(packets: 120_000, Impairments(loss: 0.03, jitter: 6, reorder: 0.02), seed: 8)
    try buffer(bench, "put + decide + get, 3 % loss, jitter, reorder", rough, isHeadline: false)
    picture(bench, alone, whole: try receivePath(bench, "receive path PCMU, packets in order", calm))
    try receivePath(bench, "receive path PCMU, 3 % loss, jitter, reorder", rough)
  }

  private static func header(_ number: Int) -> RTPHeader {
    RTPHeader(
      payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: number)),
      timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: number &* 160)), ssrc: SSRC(raw: 7))
  }

  /// NetEQ has no buffer apart from the rest: the whole path of both stands beside the buffers alone.
  private static func picture(_ bench: Bench, _ alone: BenchRow?, whole: BenchRow?) {
    guard let alone, let whole else { return }
    var plot = BarPlot(
      "Packets of 160 octets a second, one core", label: "packets per second, logarithmic: ten times from line to line",
      scale: .logarithmic)
    for figure in [alone.ours] + alone.peers.dropLast() { plot.add(figure.name + ": buffer", figure.value) }
    if let limit = alone.limit { plot.add("limit: bare ring", limit.value) }
    for figure in [whole.ours] + whole.peers where figure.value > 0 {
      plot.add(figure.name + ": with decoding and concealment", 1e9 / figure.value)
    }
    bench.save(
      plot.svg, as: "jitter-throughput",
      caption:
        "Packets per second of one core: put, decide, get; and the whole receive path of PCMU, which is all that NetEQ offers.")
  }

  @discardableResult private static func buffer(_ bench: Bench, _ name: String, _ schedule: Schedule, isHeadline: Bool) throws
    -> BenchRow?
  {
    let payload = [UInt8](repeating: 0x55, count: 160)
    let ours = BenchWork("ours") { loop in
      var buffer = PlayoutBuffer(clockRateHz: 8000, carriesRepair: false)
      var next = 0
      loop.run { tick in
        let now = schedule.tick(tick)
        while let packet = schedule.due(&next, at: now) {
          _ = buffer.insert(header(packet.number), payload: payload.span, duration: 160, at: packet.arrival)
        }
        let decision = buffer.decide(at: now, pending: 0, tick: 160)
        guard case .packet(let packet) = buffer.fetch(at: now) else { return 0 }
        return UInt64(packet.duration) &+ UInt64(packet.payload[0]) &- UInt64(bitPattern: decision.tickShift)
      }
    }
    var peers: [BenchWork] = []
    if LibreJitterBuffer() != nil { peers.append(libre(schedule, payload)) }
    if SpeexJitterBuffer() != nil { peers.append(speex(schedule, payload)) }
    peers.append(emptyLoop(schedule))
    let row = try bench.compare(
      name, as: .perSecond(unit: "packets/s"), operations: 30_000, ours: ours, peers: peers, limit: ring(schedule, payload),
      goal: .atLeast(1, of: .peer), note: "one core; the limit is a bare ring")
    guard let row else { return nil }
    // What the loop itself takes is in the rows above; here it is taken off.
    guard let ours = row.ours.instructions, let loop = row.peers.last?.instructions else { return row }
    bench.add(
      BenchRow(
        name + ": instructions", unit: "instructions", ours: BenchFigure("ours", ours - loop),
        peers: row.peers.dropLast().compactMap { peer in peer.instructions.map { BenchFigure(peer.name, $0 - loop) } },
        limit: row.limit?.instructions.map { BenchFigure("ring", $0 - loop) }, goal: isHeadline ? .atMost(0.75, of: .peer) : nil,
        note: "without the \(fixed(loop, 0)) of the loop"))
    return row
  }

  /// What measuring takes: the packets' numbers and headers, and a call per tick.
  private static func emptyLoop(_ schedule: Schedule) -> BenchWork {
    BenchWork("empty loop") { loop in
      var next = 0
      loop.run { tick in
        let now = schedule.tick(tick)
        var sum: UInt64 = 0
        while let (number, _) = schedule.due(&next, at: now) { sum &+= UInt64(header(number).sequence.raw) }
        return sum
      }
    }
  }

  private static func libre(_ schedule: Schedule, _ payload: [UInt8]) -> BenchWork {
    BenchWork("libre") { loop in
      guard let buffer = LibreJitterBuffer() else { return }
      var out = [UInt8](repeating: 0, count: 1500)
      var next = 0
      loop.run { tick in
        let now = schedule.tick(tick)
        while let (number, _) = schedule.due(&next, at: now) {
          payload.withUnsafeBufferPointer {
            buffer.put(
              sequence: UInt16(truncatingIfNeeded: number), timestamp: UInt32(truncatingIfNeeded: number &* 160), payload: $0)
          }
        }
        return UInt64(out.withUnsafeMutableBufferPointer { buffer.get(into: $0)?.timestamp ?? 0 })
      }
    }
  }

  private static func speex(_ schedule: Schedule, _ payload: [UInt8]) -> BenchWork {
    BenchWork("speexdsp") { loop in
      guard let buffer = SpeexJitterBuffer() else { return }
      var out = [UInt8](repeating: 0, count: 1500)
      var next = 0
      withoutStandardError {
        loop.run { tick in
          let now = schedule.tick(tick)
          while let (number, _) = schedule.due(&next, at: now) {
            payload.withUnsafeBufferPointer {
              buffer.put(
                sequence: UInt16(truncatingIfNeeded: number), timestamp: UInt32(truncatingIfNeeded: number &* 160), payload: $0)
            }
          }
          return UInt64(out.withUnsafeMutableBufferPointer { buffer.get(into: $0)?.timestamp ?? 0 })
        }
      }
    }
  }

  /// Payloads copied into the slot of their number and looked up there: what no jitter buffer can do without.
  private static func ring(_ schedule: Schedule, _ payload: [UInt8]) -> BenchWork {
    BenchWork("ring") { loop in
      let slots = UnsafeMutablePointer<UInt8>.allocate(capacity: 64 * 256)
      let held = UnsafeMutablePointer<Int>.allocate(capacity: 64)
      slots.initialize(repeating: 0, count: 64 * 256)
      held.initialize(repeating: -1, count: 64)
      defer {
        slots.deallocate()
        held.deallocate()
      }
      var next = 0
      loop.run { tick in
        let now = schedule.tick(tick)
        while let (number, _) = schedule.due(&next, at: now) {
          payload.withUnsafeBufferPointer { (slots + (number & 63) * 256).update(from: $0.baseAddress!, count: 160) }
          held[number & 63] = number
        }
        return held[tick & 63] == tick ? UInt64(slots[(tick & 63) * 256]) : 0
      }
    }
  }

  @discardableResult private static func receivePath(_ bench: Bench, _ name: String, _ schedule: Schedule) throws -> BenchRow? {
    let packets = try Speech.packets(.pcmu, count: 400)
    let ours = BenchWork("ours") { loop in
      var receiver = try AudioReceiver(encoding: .pcmu)
      var output = [Int16](repeating: 0, count: 160)
      var next = 0
      loop.run { tick in
        let now = schedule.tick(tick)
        while let packet = schedule.due(&next, at: now) {
          let payload = packets[packet.number % packets.count]
          _ = receiver.insert(header(packet.number), payload: payload.span, at: packet.arrival)
        }
        var span = output.mutableSpan
        _ = receiver.pull(into: &span, at: now)
        return UInt64(bitPattern: Int64(output[80]))
      }
    }
    let netEQ = BenchWork("NetEQ") { loop in
      guard let sharedStore = NetEQ(.pcmu) else { return }
      var output = [Int16](repeating: 0, count: 160)
      var next = 0
      loop.run { tick in
        let now = schedule.tick(tick)
        while let (number, arrival) = schedule.due(&next, at: now) {
          sharedStore.insert(
            sequence: UInt16(truncatingIfNeeded: number), timestamp: UInt32(truncatingIfNeeded: number &* 160),
            payload: packets[number % packets.count], at: arrival)
        }
        for half in 0..<2 {
          _ = output.withUnsafeMutableBufferPointer {
            sharedStore.pull(
              into: UnsafeMutableBufferPointer(rebasing: $0[half * 80..<half * 80 + 80]), at: now + .milliseconds(10 * half))
          }
        }
        return UInt64(bitPattern: Int64(output[80]))
      }
    }
    let row = try bench.compare(
      name, operations: 4000, ours: ours, peers: NetEQ.isInstalled ? [netEQ] : [], goal: .atMost(0.1, of: .peer),
      note: "per 20 ms, with decode, concealment and stretch")
    guard let row, let instructions = row.ours.instructions, let other = row.peers.first?.instructions else { return row }
    bench.add(
      BenchRow(
        name + ": instructions", unit: "instructions", ours: BenchFigure("ours", instructions),
        peers: [BenchFigure("NetEQ", other)],
        goal: .atMost(0.1, of: .peer)))
    return row
  }
}

/// Packets on their way, in the order of their arrival; a tick every 20 ms. Kept for the process's life; asked at next to no cost.
struct Schedule {
  private let packets: UnsafeMutablePointer<(number: Int, arrival: Instant)>

  init(packets count: Int, _ network: Impairments, seed: UInt64) {
    let trace = Trace.made("", seconds: count / 50, network, seed: seed)
    let arrivals = trace.packets.enumerated()
      .compactMap { number, packet in packet.arrived.map { (Int64($0 * 1_000_000), number) } }
      .sorted { ($0.0, $0.1) < ($1.0, $1.1) }
    packets = .allocate(capacity: arrivals.count + 1)
    for (index, arrival) in arrivals.enumerated() { packets[index] = (arrival.1, Instant(nanoseconds: arrival.0)) }
    packets[arrivals.count] = (0, .distantFuture)
  }

  @inline(__always) func tick(_ index: Int) -> Instant { Instant(nanoseconds: Int64(index) &* 20_000_000 &+ 46_000_000) }

  /// The next packet if it has come; moves on.
  @inline(__always) func due(_ next: inout Int, at now: Instant) -> (number: Int, arrival: Instant)? {
    let packet = packets[next]
    guard packet.arrival <= now else { return nil }
    next &+= 1
    return packet
  }
}
