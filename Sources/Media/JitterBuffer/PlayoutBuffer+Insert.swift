import TrunklineBytes
import TrunklineRTP

extension PlayoutBuffer {
  /// Stores one packet.
  /// - Parameters:
  ///   - duration: of its audio in RTP clock units; 0 for another kind of packet in the same sequence (telephone-event), whose
  ///     position is kept.
  ///   - carriesRepair: it holds a copy of the previous packet.
  ///   - format: the number of its coding, 0…127, for `FetchedPacket`.
  // HOT
  public mutating func insert(
    _ header: RTPHeader, payload: Span<UInt8>, duration: Int, carriesRepair: Bool = false, format: UInt8 = 0, at now: Instant
  ) -> Insertion {
    let arrival = units(now)
    statistics.inserted &+= 1
    let audio = Incoming(duration: Int32(clamping: max(0, duration)), carriesRepair: carriesRepair, format: format)
    // Only audio chooses a source.
    let verdict = duration > 0 || header.ssrc == source ? active.admit(header.ssrc, at: now) : .inactive
    guard verdict == .active, let source, let sequence = extendedSequence(header, source: source) else {
      return resynchronise(header, payload: payload, audio: audio, verdict: verdict, arrival: arrival)
    }
    // Before play-out an overtaken packet still becomes the first, as long as all stored ones lie within the store's size.
    if sequence < next, started || highest &- sequence >= Int64(Limits.packets) {
      return tooLate(header, sequence: sequence, arrival: arrival)
    }
    guard store.packet(sequence) == nil else {
      statistics.duplicate &+= 1
      return .duplicate
    }
    if duration > 0 { followClock(header, sequence: sequence, duration: Int64(duration), arrival: arrival) }
    let timestamp = line(header.timestamp)
    let step = timestamp &- lastTimestamp
    let limit = Int64(Limits.timestampStepMilliseconds) &* unitsPerMillisecond
    if step.magnitude > limit, (step &- (arrival &- lastArrival)).magnitude > limit, duration > 0 {
      return begin(header, payload: payload, audio: audio, arrival: arrival)
    }
    let late = arrival &- lastArrival &- step
    if overdue != nil || late >= Int64(Limits.standstillMilliseconds) &* unitsPerMillisecond, duration > 0 {
      judgeStandstill(sequence: sequence, step: step, late: late, arrival: arrival)
    }
    if sequence &- next >= Int64(Limits.packets) { makeRoom(for: sequence) }
    let length = audio.duration
    let result = keep(sequence, timestamp: timestamp, stamp: header.timestamp, payload: payload, audio: audio, arrival: arrival)
    guard result == .stored else { return result }
    if !started, sequence < next { (next, position) = (sequence, timestamp) }
    if length > 0, Int64(length) != packetDuration { (packetDuration, grainTick) = (Int64(length), -1) }
    return .stored
  }

  /// The caller's description of a packet.
  struct Incoming {
    var duration: Int32
    var carriesRepair: Bool
    var format: UInt8
  }

  /// A timestamp on the extended line, in units of the codec's clock whatever the sender's clock is.
  @inline(__always) private func line(_ timestamp: RTPTimestamp) -> Int64 {
    if clock.isUsual {
      return lastTimestamp &+ Int64(timestamp.distance(from: RTPTimestamp(raw: UInt32(truncatingIfNeeded: lastTimestamp))))
    }
    return lastTimestamp &+ clock.units(Int64(timestamp.distance(from: lastStamp)))
  }

  /// Learns the sender's clock: compares the timestamp step between consecutive numbers with the packets' duration.
  @inline(__always) private mutating func followClock(_ header: RTPHeader, sequence: Int64, duration: Int64, arrival: Int64) {
    let step = Int64(header.timestamp.distance(from: lastStamp))
    guard sequence == highest &+ 1, duration == packetDuration, clock.units(step) != duration else { return clock.interrupt() }
    if clock.learn(step: step, duration: duration, arrival: arrival) { delay.timelineChanged() }
  }

  @inline(__always) private mutating func keep(
    _ sequence: Int64, timestamp: Int64, stamp: RTPTimestamp, payload: Span<UInt8>, audio: Incoming, arrival: Int64
  ) -> Insertion {
    let duration = audio.duration
    let packet = StoredPacket(
      sequence: sequence, timestamp: timestamp, transit: arrival &- timestamp, duration: duration,
      carriesRepair: audio.carriesRepair, format: audio.format)
    guard store.put(packet, payload: payload) else {
      statistics.refused &+= 1
      return .refused
    }
    highest = max(highest, sequence)
    guard duration > 0 else { return .stored }
    delay.arrived(transit: arrival &- timestamp, inTime: true)
    lastTimestamp = timestamp
    lastStamp = stamp
    lastArrival = arrival
    return .stored
  }

  /// The packet's extended number; nil if it is outside this stream's range.
  @inline(__always) private mutating func extendedSequence(_ header: RTPHeader, source: SSRC) -> Int64? {
    guard header.ssrc == source else { return nil }
    let distance = header.sequence.distance(from: SequenceNumber(raw: UInt16(truncatingIfNeeded: highest)))
    guard distance < Limits.packets &* 4 else { return nil }
    if distance <= -Limits.misorder {
      // This far back the sender restarted, unless number and timestamp agree that the packet is only very late, within a
      // network's limits.
      let units = line(header.timestamp) &- lastTimestamp
      let expected = Int64(distance) &* packetDuration
      guard started, expected.magnitude <= UInt64(Limits.lateMilliseconds) &* UInt64(unitsPerMillisecond),
        (units &- expected).magnitude < expected.magnitude / 4
      else { return nil }
    }
    return highest &+ Int64(distance)
  }

  @inline(never) private mutating func tooLate(_ header: RTPHeader, sequence: Int64, arrival: Int64) -> Insertion {
    let behind = next &- 1 &- sequence
    if behind < 64, played >> UInt64(behind) & 1 == 1 {
      statistics.duplicate &+= 1
      return .duplicate
    }
    statistics.late &+= 1
    lateAt = highest
    if behind < 64 { played |= 1 << UInt64(behind) }
    let timestamp = line(header.timestamp)
    delay.arrived(transit: arrival &- timestamp, inTime: false)
    return .late
  }

  /// If a packet arrives long after the one before it without a missing number, and the next one a packet's duration later, the
  /// sender's clock stood still, and earlier delays no longer apply.
  @inline(never) private mutating func judgeStandstill(sequence: Int64, step: Int64, late: Int64, arrival: Int64) {
    let isNext = sequence == highest &+ 1
    if let overdue, isNext, overdue == highest, arrival &- lastArrival >= step / 2 {
      delay.timelineChanged()
      stoodStill = true
    }
    let isOverdue = isNext && late >= Int64(Limits.standstillMilliseconds) &* unitsPerMillisecond
    overdue = isOverdue ? sequence : nil
  }

  /// Handles a distant number or another source. A number is accepted if the stream was silent for 100 ms, or if its successor
  /// follows; a source by the rule of `ActiveSource`.
  @inline(never) private mutating func resynchronise(
    _ header: RTPHeader, payload: Span<UInt8>, audio: Incoming, verdict: ActiveSource.Verdict, arrival: Int64
  ) -> Insertion {
    let isBelieved =
      switch verdict {
      case .began: true
      case .inactive: false
      case .active:
        source == nil || candidate?.next == header.sequence || arrival &- lastArrival >= 100 &* unitsPerMillisecond
      }
    guard isBelieved, audio.duration > 0 else {
      if verdict == .active { candidate = header.sequence }
      statistics.outOfRange &+= 1
      return .outOfRange
    }
    return begin(header, payload: payload, audio: audio, arrival: arrival)
  }

  @inline(never) private mutating func begin(
    _ header: RTPHeader, payload: Span<UInt8>, audio: Incoming, arrival: Int64
  ) -> Insertion {
    let isFirst = source == nil
    if !isFirst { statistics.resynchronised &+= 1 }
    statistics.overflowed &+= UInt64(store.count)
    store.removeAll()
    candidate = nil
    if source != header.ssrc { clock = SenderClock() }
    source = header.ssrc
    // Leaves room below for overtaken packets: numbers stay positive.
    highest = 65_536 &+ Int64(header.sequence.raw)
    let timestamp = Int64(header.timestamp.raw)
    next = highest
    position = timestamp
    started = false
    played = 0
    waited = 0
    slack = .min / 2
    lateAt = .min / 2
    lossyThrough = .min / 2
    overdue = nil
    stoodStill = false
    packetDuration = Int64(audio.duration)
    grainTick = -1
    lastStamp = header.timestamp
    delay.timelineChanged()
    let result = keep(highest, timestamp: timestamp, stamp: header.timestamp, payload: payload, audio: audio, arrival: arrival)
    // The packet began the stream even if it was refused for its size.
    lastTimestamp = timestamp
    lastArrival = arrival
    return result != .stored ? result : isFirst ? .stored : .resynchronised
  }

  /// Keeps all stored numbers within `Limits.packets`: drops the oldest when a new one is too far ahead.
  @inline(never) private mutating func makeRoom(for sequence: Int64) {
    let first = sequence &- Int64(Limits.packets) &+ 1
    while next < first {
      if let packet = store.packet(next) {
        statistics.overflowed &+= 1
        position = packet.pointee.timestamp &+ Int64(packet.pointee.duration)
        store.remove(packet)
      }
      advance(played: false)
    }
    if let packet = store.first(after: next &- 1, through: highest) { position = packet.pointee.timestamp }
    waited = 0
  }
}
