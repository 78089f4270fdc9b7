import HTTP
import Testing
import TrunklineBytes

@testable import PushPolicy

@Suite struct WebhookAnswerTests {
  private func read(_ text: String, status: Int = 200) -> RouteAnswer? {
    RouteAnswer(HTTPClientResponse(status: status, body: Array(text.utf8)))
  }

  @Test func `answers are read by their fields, each of which may be left out`() {
    #expect(
      read(#"{"users":["alice","bob"],"name":"Carol","from":"+1555","code":404,"more":[1]}"#)
        == RouteAnswer(users: ["alice", "bob"], name: "Carol", from: "+1555", code: 404))
    #expect(read("{}") == RouteAnswer())
    #expect(read(#"{"users":[]}"#) == RouteAnswer(users: []))
  }

  @Test(arguments: [
    "", "null", "[]", "<html>", "{", #"{"users":"alice"}"#, #"{"users":[1]}"#, #"{"name":5}"#, #"{"code":200}"#,
    #"{"code":"404"}"#, #"{"name":"a\u0000b"}"#,
    #"{"from":"a\r\nb"}"#, "\u{fffd}\u{0}",
  ])
  func `nonsense is no answer`(text: String) { #expect(read(text) == nil) }

  @Test func `what is too long, too many, or not 200 is no answer`() {
    #expect(read(#"{"name":"\#(String(repeating: "x", count: 513))"}"#) == nil)
    #expect(read(#"{"more":"\#(String(repeating: "x", count: 9_000))"}"#) == nil)
    #expect(read(#"{"users":[\#(Array(repeating: "\"a\"", count: 17).joined(separator: ","))]}"#) == nil)
    for status in [204, 301, 302, 400, 404, 500, 503] { #expect(read(#"{"users":["alice"]}"#, status: status) == nil) }
    #expect(RouteAnswer(HTTPClientResponse(status: 200, body: [0xff, 0xfe, 0x7b])) == nil)
  }

  @Test func `a question is signed with its time; another key, body or time gives another signature`() throws {
    let hook = Webhook(url: "https://a", key: Redacted(Array("secret".utf8)))
    let body = Array(#"{"a":1}"#.utf8)
    let headers = hook.headers(body, at: 1_700_000_000)
    #expect(headers.first { $0.name == "content-type" }?.value == "application/json")
    let signature = try #require(headers.first { $0.name == "trunkline-signature" }?.value)
    // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac secret
    #expect(signature == "t=1700000000,v1=49f24e537407743fa4a0242bb63b94b9a47ee99cbbe071ccd8a22550ae411686")
    #expect(hook.headers(body + [32], at: 1_700_000_000)[1].value != signature)
    #expect(Webhook(url: "https://a", key: Redacted(Array("secreT".utf8))).headers(body, at: 1_700_000_000)[1].value != signature)
  }

  @Test func `at most so many questions at once, and a server that fails five times is left alone for a second`() {
    var gate = WebhookGate()
    var now = Instant(nanoseconds: 1_000_000_000)
    func admits(_ url: String) -> Bool { gate.admits(url, at: now) }
    for _ in 0..<Limits.webhooksUnderWay {
      let isAdmitted = admits("a")
      #expect(isAdmitted)
    }
    var answers = [admits("a"), admits("b")]
    for _ in 0..<5 { gate.ended("a", answered: false, at: now) }
    answers += [gate.isOpen("a"), admits("a"), admits("b")]
    now = now + .milliseconds(1_100)
    answers += [admits("a"), admits("a")]
    gate.ended("a", answered: true, at: now)
    answers += [gate.isOpen("a"), admits("a")]
    #expect(answers == [false, false, true, false, true, true, false, false, true])
  }
}
