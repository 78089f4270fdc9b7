import Testing
import TrunklineBytes

@testable import PushPolicy

@Suite struct EventSinkTests {
  @Test(arguments: [
    ("https://me:pass@hooks.example:8443/services/T0/B0/x?token=y", "https://hooks.example:8443/services/…"),
    ("https://hooks.example/in?key=s3cret", "https://hooks.example/…"),
    ("https://hooks.example?key=s3cret", "https://hooks.example/…"),
    ("https://hooks.example", "https://hooks.example"), ("https://hooks.example/", "https://hooks.example/"),
    ("https://hooks.example/s3cret", "https://hooks.example/…"), ("https://a@b@c.example/", "https://c.example/"),
  ]) func `a log shows a webhook's host, and none of the secrets in its URL`(url: String, shown: String) {
    #expect(EventWebhook(url: url, keys: []).shown == shown)
  }

  private var sink = EventSink(.init(), random: .seeded(7))
  private var now = Instant(nanoseconds: 1_000_000_000)

  private func item(_ position: UInt64, _ subject: String) -> EventSink.Item {
    .init(position: position, subject: subject, at: 0)
  }

  private mutating func due() -> [UInt64] {
    var out: [UInt64] = []
    while let position = sink.next(at: now) { out.append(position) }
    return out
  }

  private mutating func ended(_ position: UInt64, _ outcome: EventSink.Outcome, wallNow: Int64 = 0) -> Bool {
    sink.ended(position, outcome, at: now, wallNow: wallNow)
  }

  @Test mutating func oneAtATimeOfEachSubjectInOrder() {
    for position in 1...6 { sink.append(item(UInt64(position), position % 2 == 0 ? "even" : "odd")) }
    #expect(due() == [1, 2])
    _ = ended(2, .accepted)
    #expect(due() == [4])
    _ = ended(1, .accepted)
    _ = ended(4, .accepted)
    #expect(due().sorted() == [3, 6])
    #expect(sink.state == .init(read: 6, open: [3, 5, 6]))
  }

  /// A status that is about one event holds up its own subject only.
  @Test mutating func anEventThatIsRefusedHoldsUpItsSubjectOnly() throws {
    for position in 1...40 { sink.append(item(UInt64(position), position <= 2 ? "bad" : "good \(position)")) }
    var told: [UInt64] = []
    for _ in 0..<10 {
      for position in due() {
        _ = ended(position, position == 1 ? .failed(isServer: false, retryAfter: nil) : .accepted)
        if position != 1 { told.append(position) }
      }
    }
    #expect(told == Array(3...40))
    now = try #require(sink.nextDue(after: now))
    #expect(due() == [1])
    #expect(ended(1, .failed(isServer: false, retryAfter: nil), wallNow: Limits.eventAge.milliseconds + 1))
    #expect(due() == [2])
  }

  /// One request at a time looks whether a dead server is back, at most every minute; then everything goes out at once.
  @Test mutating func aDeadServerIsLeftAlone() throws {
    for position in 1...100 { sink.append(item(UInt64(position), "call \(position)")) }
    let first = due()
    #expect(first.count == Limits.eventsUnderWay)
    for position in first { _ = ended(position, .failed(isServer: true, retryAfter: nil)) }
    #expect(due().isEmpty)
    var pauses: [Duration] = []
    for _ in 0..<12 {
      let next = try #require(sink.nextDue(after: now))
      pauses.append(next - now)
      now = next
      let probe = due()
      #expect(probe.count == 1)
      _ = ended(probe[0], .failed(isServer: true, retryAfter: nil))
    }
    #expect(pauses.allSatisfy { $0 <= .seconds(60) } && pauses.last! >= .seconds(30))
    now = try #require(sink.nextDue(after: now))
    let probe = due()
    _ = ended(probe[0], .accepted)
    var told = Set(probe)
    while true {
      let batch = due()
      if batch.isEmpty { break }
      for position in batch { _ = ended(position, .accepted) }
      told.formUnion(batch)
    }
    #expect(told.count == 100 && sink.count == 0)
  }

  /// One event that the server answers with 500 each time: its pauses grow, and the others lose no more than those.
  @Test mutating func anEventThatTheServerFailsAtIsNotTriedInALoop() throws {
    sink.append(item(1, "bad"))
    var (position, attempts, told): (UInt64, Int, Int) = (1, 0, 0)
    let end = now + .seconds(600)
    while now < end {
      position += 1
      sink.append(item(position, "call \(position)"))
      for next in due() {
        if next == 1 { attempts += 1 } else { told += 1 }
        _ = ended(next, next == 1 ? .failed(isServer: true, retryAfter: nil) : .accepted)
      }
      now = now + .milliseconds(100)
    }
    #expect((5...12).contains(attempts), "\(attempts)")
    #expect(told > 5_900, "\(told) of \(position - 1)")
  }

  @Test mutating func whatAServerAsksForIsKeptTo() throws {
    sink.append(item(1, "a"))
    #expect(due() == [1])
    _ = ended(1, .failed(isServer: true, retryAfter: .seconds(90)))
    #expect(try #require(sink.nextDue(after: now)) - now >= .seconds(90))
  }

  @Test mutating func roomIsBounded() {
    var position: UInt64 = 0
    while sink.hasRoom {
      position += 1
      sink.append(item(position, "one"))
    }
    #expect(sink.count == Limits.eventsOpen)
    sink.skip(to: position + 5)
    #expect(sink.read == position + 5)
  }
}

/// The example of the Standard Webhooks specification and of its libraries.
@Suite struct StandardWebhookTests {
  private let key = StandardWebhook.key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")!
  private let body = Array(#"{"test": 2432232314}"#.utf8)
  private let id = "msg_p5jXN8AQM9LWM0D4loKWxJek"

  @Test func signsAsTheSpecificationSays() {
    let headers = StandardWebhook.headers(id: id, body: body, keys: [Redacted(key)], at: 1_614_265_330)
    #expect(headers.first { $0.name == "webhook-signature" }?.value == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
  }

  @Test func aRotatedKeyIsGoodAndNothingElse() {
    let new = Array("another secret of ours".utf8)
    let headers = StandardWebhook.headers(id: id, body: body, keys: [Redacted(new), Redacted(key)], at: 1_614_265_330)
    let signatures = headers.first { $0.name == "webhook-signature" }?.value ?? ""
    func isGenuine(_ keys: [[UInt8]], id: String? = nil, now: Int64 = 1_614_265_400, timestamp: String = "1614265330") -> Bool {
      StandardWebhook.isGenuine(
        id: id ?? self.id, timestamp: timestamp, signatures: signatures, body: body, keys: keys, now: now)
    }
    #expect(isGenuine([key]) && isGenuine([new]))
    #expect(!isGenuine([Array("a secret of nobody".utf8)]))
    #expect(!isGenuine([key], id: "other"))
    #expect(!isGenuine([key], now: 1_614_266_000))
    #expect(!isGenuine([key], timestamp: "-9223372036854775808"))
    #expect(!isGenuine([key], timestamp: "soon"))
  }

  @Test(arguments: ["", "short", "whsec_", "whsec_!!!", "whsec_QUJD"])
  func secretsThatAreNone(_ text: String) { #expect(StandardWebhook.key(text) == nil) }
}
