import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

/// Parts of the two directions. Noncopyable parts are evaluated into values before `#expect`.
@Suite struct DirectionPartTests {
  private func frames(_ body: (UnsafeMutablePointer<Int16>) -> Void) {
    var samples = [Int16](repeating: 0, count: 2 * Frame.capacity)
    samples.withUnsafeMutableBufferPointer { if let base = $0.baseAddress { body(base) } }
  }

  @Test func `relaying begins with an empty queue and is stopped by name alone`() {
    var relay = RelaySwitch()
    relay.queueDropped()
    relay.stop()
    #expect(!relay.isOn && !relay.isPrimed)
    relay.packetQueued()
    relay.packetQueued()
    relay.stop()
    #expect(!relay.isOn && relay.isPrimed)
    relay.begin()
    relay.begin()
    #expect(relay.isOn && !relay.isPrimed)
    relay.stop()
    relay.queueDropped()
    #expect(!relay.isOn && !relay.isPrimed)
  }

  @Test func `without kept words a frame passes as it is`() {
    var words = FirstWords()
    frames { frame in
      frame[0] = 77
      words.keep(frame)
      words.release()
      words.setBand(.wideband)
      words.drop()
      let passed = [words.pass(frame, hasAudio: true), words.pass(frame, hasAudio: false)]
      let isEmpty = words.isEmpty
      #expect(passed == [true, false] && isEmpty && frame[0] == 77)
    }
  }

  @Test func `words are held until the release, then played from their beginning until none are left`() {
    var words = FirstWords()
    words.begin(.narrowband)
    frames { frame in
      for number in 0..<10 {
        for k in 0..<160 { frame[k] = tone(number)[k] }
        let passed = words.pass(frame, hasAudio: true)
        #expect(!passed)
      }
      words.release()
      words.release()
      var played = 0
      for _ in 0..<30 where words.pass(frame, hasAudio: false) { played += 1 }
      let isEmpty = words.isEmpty
      #expect((6...10).contains(played) && isEmpty)
    }
  }

  @Test func `released before a word was kept, and dropped while holding, nothing is kept`() {
    var words = FirstWords()
    words.begin(.narrowband)
    words.release()
    let released = words.isEmpty
    words.begin(.narrowband)
    words.setBand(.wideband)
    let kept = !words.isEmpty
    words.drop()
    let dropped = words.isEmpty
    #expect(released && kept && dropped)
  }

  @Test func `an encoder is made once, for its encoding, and encodes nothing before or after`() {
    var slot = EncoderSlot()
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1_500, alignment: 8)
    defer { room.deallocate() }
    var counts: [Int] = []
    var encodings: [AudioEncoding?] = [slot.encoding]
    frames { frame in
      slot.setBand(.wideband)
      slot.limitComplexity(to: 3)
      slot.reported(lossFraction: 0.1, roundTripMilliseconds: nil, at: .zero)
      counts.append(slot.encode(frame, 160, into: room))
      slot.make(.pcmu, .narrowband, OpusPreferences(), complexity: 5, ceiling: 10)
      slot.make(.opus, .narrowband, OpusPreferences(), complexity: 5, ceiling: 10)
      encodings.append(slot.encoding)
      counts.append(slot.encode(frame, 160, into: room))
      slot.free()
      slot.free()
      encodings.append(slot.encoding)
      counts.append(slot.encode(frame, 160, into: room))
    }
    #expect(counts == [0, 160, 0] && encodings == [nil, .pcmu, nil])
  }

  @Test func `tones are heard only while listening, and a repeated request does not interrupt a digit`() {
    var tones = ToneListener()
    var digits: [UInt8] = []
    frames { frame in
      for round in 0..<3 {
        tones.listen(round == 1)
        for number in 0..<10 {
          if round == 1 { tones.listen(true) }
          if number < 5 { writeTone(5, at: number, into: frame, .narrowband) }
          let digit = tones.receive(frame, count: number < 5 ? 160 : 0, band: .narrowband)
          if let digit { digits.append(digit.digit) }
        }
      }
    }
    let isListening = tones.isListening
    #expect(digits == [UInt8(ascii: "5")] && !isListening)
  }

  @Test func `first audio is reported once in each direction`() {
    var downlink = Downlink()
    var uplink = Uplink()
    let waits = [downlink.awaitsFirstAudio, uplink.awaitsFirstAudio]
    let first = [downlink.firstAudio(), downlink.firstAudio(), uplink.firstAudio(), uplink.firstAudio()]
    let after = [downlink.awaitsFirstAudio, uplink.awaitsFirstAudio]
    #expect(waits == [true, true] && first == [true, false, true, false] && after == [false, false])
  }

  @Test func `a direction that relays has neither receiver nor coded silence; the app's keeps its encoder`() {
    var downlink = Downlink()
    var uplink = Uplink()
    downlink.receiver.make(.pcmu, .narrowband)
    uplink.receiver.make(.pcmu, .narrowband)
    downlink.encoder.make(.pcmu, .narrowband, OpusPreferences(), complexity: 5, ceiling: 10)
    uplink.encoder.make(.pcmu, .narrowband, OpusPreferences(), complexity: 5, ceiling: 10)
    downlink.fillGaps(true)
    downlink.beginRelaying()
    uplink.beginRelaying()
    let empty = [downlink.receiver.isEmpty, uplink.receiver.isEmpty, downlink.encoder.isEmpty, !uplink.encoder.isEmpty]
    let silence = downlink.nextSilence()
    #expect(empty == [true, true, true, true] && silence == nil)
  }

  @Test func `without coded silence every request for it is empty`() {
    var downlink = Downlink()
    let packet: [UInt8] = [1, 2, 3]
    downlink.keepSilence(packet.span)
    downlink.dropSilence()
    var silence = downlink.nextSilence()
    #expect(silence == nil)
    downlink.fillGaps(true)
    silence = downlink.nextSilence()
    #expect(silence == nil)
  }

  @Test func `a press during digits follows them with all its packets; others, and without digits, are sent at once`() {
    var uplink = Uplink()
    var deferred = [uplink.defers(1, timestamp: 100, acceptsEvents: true)]
    _ = uplink.sender.enqueue(UInt8(ascii: "1"))
    deferred += [uplink.defers(1, timestamp: 100, acceptsEvents: false), uplink.defers(1, timestamp: 200, acceptsEvents: true)]
    while !uplink.sender.isIdle { _ = uplink.sender.tick() }
    // the same press after the digits is still that one; another source or a later press is not
    deferred += [
      uplink.defers(1, timestamp: 200, acceptsEvents: true), uplink.defers(2, timestamp: 200, acceptsEvents: true),
      uplink.defers(1, timestamp: 300, acceptsEvents: true),
    ]
    #expect(deferred == [false, false, true, true, false, false])
  }

  @Test func `the same event clock keeps digits that wait, another drops them`() {
    var uplink = Uplink()
    uplink.setEventClock(rateHz: 48_000)
    _ = uplink.sender.enqueue(UInt8(ascii: "1"))
    uplink.setEventClock(rateHz: 48_000)
    let kept = !uplink.sender.isIdle
    uplink.setEventClock(rateHz: 8_000)
    let dropped = uplink.sender.isIdle
    #expect(kept && dropped)
  }

  @Test func `gathered frames are dropped once, and their duration returned`() {
    var uplink = Uplink()
    var units = [uplink.clearFrames(unitsPerFrame: 160, .narrowband)]
    uplink.setFormat(AudioEncoding.pcmu.row, packetTimeMilliseconds: 60)
    uplink.packetizer.added(160)
    units += [uplink.clearFrames(unitsPerFrame: 160, .narrowband), uplink.clearFrames(unitsPerFrame: 160, .narrowband)]
    #expect(units == [0, 160, 0])
  }
}
