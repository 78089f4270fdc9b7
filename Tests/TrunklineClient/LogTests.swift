import Foundation
import Synchronization
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

@testable import TrunklineClient

/// What a log sink is handed, and when.
@Suite struct LogTests {
  private final class Sink: Sendable {
    let entries = AsyncStream.makeStream(of: Phone.LogEntry.self)
    func take(_ entry: Phone.LogEntry) { entries.continuation.yield(entry) }
    func next(_ count: Int) async -> [Phone.LogEntry] {
      var found: [Phone.LogEntry] = []
      for await entry in entries.stream {
        found.append(entry)
        if found.count == count { break }
      }
      return found
    }
  }

  @Test func `entries of the launch wait for the sink, the oldest give way, and what is lost is counted`() async {
    let (logger, sink) = (PhoneLogger(nil), Sink())
    for number in 0..<(PhoneLogger.limit + 3) { logger.note(.info, .networkChanged, [.init("number", "\(number)")]) }
    logger.set({ sink.take($0) }, minimum: .info)
    let entries = await sink.next(PhoneLogger.limit + 1)
    #expect(entries[0].code == .logDropped && entries[0].fields.map(\.value) == ["3"])
    #expect(entries[1].fields.map(\.value) == ["3"] && entries.last?.fields.map(\.value) == ["\(PhoneLogger.limit + 2)"])
  }

  @Test func `after a flush the sink has every entry so far`() {
    let logger = PhoneLogger(nil)
    let count = Mutex(0)
    logger.set({ _ in count.withLock { $0 += 1 } }, minimum: .info)
    for number in 1...200 {
      logger.note(.info, .networkChanged)
      guard number % 50 == 0 else { continue }
      logger.flush()
      #expect(count.withLock(\.self) == number)
    }
  }

  @Test func `a sink that blocks holds up nobody, and what waits for it is bounded`() async {
    let (logger, sink, gate) = (PhoneLogger(nil), Sink(), DispatchSemaphore(value: 0))
    logger.set(
      {
        sink.take($0)
        gate.wait()
      }, minimum: .info)
    logger.note(.info, .networkChanged)
    #expect(await sink.next(1).map(\.code) == [.networkChanged])
    // these return while the sink blocks
    for _ in 0..<10_000 { logger.note(.info, .foreground) }
    for _ in 0..<(PhoneLogger.limit + 2) { gate.signal() }
    let rest = await sink.next(PhoneLogger.limit + 1)
    #expect(rest[0].code == .logDropped && rest[0].fields.map(\.value) == ["\(10_000 - PhoneLogger.limit)"])
    #expect(rest.dropFirst().allSatisfy { $0.code == .foreground })
  }

  @Test func `below the level nothing is made, and without a sink nothing is kept`() async {
    let (logger, sink) = (PhoneLogger(nil), Sink())
    logger.set({ sink.take($0) }, minimum: .warning)
    #expect(!logger.accepts(.info) && logger.accepts(.warning))
    logger.note(.info, .foreground)
    logger.note(.error, .audioFailed)
    #expect(await sink.next(1).map(\.code) == [.audioFailed])
    logger.set(nil, minimum: .info)
    #expect(!logger.accepts(.error))
    logger.note(.error, .audioFailed)
    logger.set({ sink.take($0) }, minimum: .info)
    logger.note(.info, .foreground)
    #expect(await sink.next(1).map(\.code) == [.foreground])
  }

  @Test func `an entry is one line that can be searched, whatever its values hold`() {
    let call = UUID(uuidString: "01920000-0000-7000-8000-00000000000A")
    let entry = Phone.LogEntry(
      time: .milliseconds(12_345), level: .warning, code: .mediaFailed, call: call,
      fields: [.init("stage", "ice"), .init("detail", "no pair\r\nof \u{85}candidates \"works\"")])
    let line = "12.345 warning media-failed call=01920000-0000-7000-8000-00000000000a stage=ice"
    #expect(entry.description == line + #" detail="no pair  of  candidates \"works\"""#)
    #expect(Phone.LogEntry.Field("detail", String(repeating: "x", count: 5_000)).value.count == 200)
    let codes = Phone.LogEntry.Code.allCases.map(\.rawValue)
    #expect(codes.allSatisfy { $0.allSatisfy { $0.isLowercase || $0 == "-" } } && Set(codes).count == codes.count)
  }

  @Test func `a call's life is in it: state by state, with the number masked as the gateway does`() {
    var lines = LogLines()
    let call = Identifier(high: 1, low: 1)
    func told(_ state: ClientCall.State, _ change: (inout CallInfo) -> Void = { _ in }) -> [String] {
      var info = CallInfo(id: call, isOutgoing: false, peer: Handle(k: .phone, h: "+15550001234", n: "Ann"), state: state)
      change(&info)
      return lines.lines(of: .changed(info), gateway: nil, isDetailed: false).map {
        "\($0.level) \($0.code.rawValue) " + $0.fields.map { "\($0.name)=\($0.value)" }.joined(separator: " ")
      }
    }
    #expect(told(.ringing) == ["info call-state is=ringing direction=incoming peer=••••••••••34"])
    #expect(told(.ringing).isEmpty)
    #expect(told(.connected) { $0.codec = "opus" } == ["info call-state is=connected codec=opus"])
    #expect(told(.connected) { $0.isReconnecting = true } == ["warning call-reconnecting isOn=true"])
    #expect(told(.connected) == ["info call-reconnecting isOn=false"])
    #expect(told(.connected) { $0.isHeld = true } == ["info call-held isHeld=true isHeldByPeer=false"])
    #expect(told(.ended) { $0.reason = .networkLost } == ["error call-state is=ended reason=networkLost"])
  }

  @Test func `of the gateway there is the host alone, and of a text that names a number its last digits`() {
    var lines = LogLines()
    let url = "wss://user:pass@phone.example.com:8443/secret/v1/connect?token=SECRET"
    let connect = lines.lines(of: .socket(.connect), gateway: url, isDetailed: true)
    #expect(connect.flatMap(\.fields).map(\.value) == ["phone.example.com:8443"])
    #expect(
      lines.lines(of: .socket(.connect), gateway: "no address", isDetailed: true).flatMap(\.fields).map(\.value) == ["none"])
    let failed = lines.lines(of: .media(Identifier(high: 1, low: 1), .failed(.ice, "call of +15550001234")), isDetailed: true)
    #expect(failed[0].fields[1].value.hasSuffix("34") && !failed[0].fields[1].value.contains("5550001"))
  }

  @Test func `frames are in it by type where messages are wanted, and none of what they hold`() {
    var lines = LogLines()
    let offer = CallWake(
      call: Identifier(high: 1, low: 1), exp: 1, from: Handle(k: .phone, h: "+15550001", n: "Ann"), gw: "wss://n2", wake: "SECRET"
    )
    let frame = ServerFrame(.callWake(offer), call: Identifier(high: 1, low: 1)).encoded()
    #expect(lines.lines(of: .socket(.frame(frame)), isDetailed: false).isEmpty)
    let detailed = lines.lines(of: .socket(.frame(frame)), isDetailed: true)
    #expect(detailed.map(\.code) == [.messageReceived] && detailed[0].fields.map(\.value) == ["call.wake"])
    let garbage = lines.lines(of: .socket(.frame(Array("SECRET {".utf8))), isDetailed: true)
    #expect(garbage[0].level == .warning && garbage[0].fields.map(\.value) == ["unreadable", "8"])
  }
}
