import CallFlow
import CallModel
import Foundation
import Testing
import TrunklineBytes
import TrunklineMediaSession

@testable import MediaStreams

/// The wire format of Twilio's Media Streams.
@Suite struct StreamMessagesTests {
  private func messages(_ format: StreamTarget.Format = .mulaw) throws -> StreamMessages {
    let url = try #require(StreamURL("wss://bot.example/call"))
    let call = try #require(CallID("5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11"))
    return StreamMessages(
      StreamRequest(call, StreamTarget(url, format: format), parameters: ["from": "+1"], stream: AudioStream()))
  }
  private func json(_ bytes: [UInt8]) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
  }

  @Test func `start says what Twilio's says`() throws {
    var messages = try messages()
    #expect(try json(messages.connected())["event"] as? String == "connected")
    let start = try json(messages.start())
    #expect(start["event"] as? String == "start" && start["sequenceNumber"] as? String == "1")
    #expect(start["streamSid"] as? String == "MZ5f0c7f0e4a524c0e9a1e2f0d7f6f0a11")
    let inner = try #require(start["start"] as? [String: Any])
    #expect(inner["callSid"] as? String == "5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11" && inner["tracks"] as? [String] == ["inbound"])
    #expect(inner["customParameters"] as? [String: String] == ["from": "+1"])
    let format = try #require(inner["mediaFormat"] as? [String: Any])
    #expect(
      format["encoding"] as? String == "audio/x-mulaw" && format["sampleRate"] as? Int == 8_000 && format["channels"] as? Int == 1
    )
  }

  @Test func `media is numbered, timed and µ-law in Base64`() throws {
    var messages = try messages()
    _ = messages.start()
    for number in 1...3 {
      let (isText, bytes) = messages.media([Int16](repeating: 0, count: 160))
      let message = try json(bytes)
      let media = try #require(message["media"] as? [String: Any])
      #expect(isText && message["sequenceNumber"] as? String == "\(number + 1)")
      #expect(media["chunk"] as? String == "\(number)" && media["timestamp"] as? String == "\(20 * (number - 1))")
      #expect(media["payload"] as? String == Data(repeating: 0xff, count: 160).base64EncodedString())
    }
    var wide = try self.messages(.pcm16)
    let (isText, bytes) = wide.media([1, -1])
    #expect(!isText && bytes == [1, 0, 0xff, 0xff])
  }

  @Test func `marks, digits and stop name their stream, with what JSON must escape`() throws {
    var messages = try messages()
    let mark = try json(messages.mark("a \"quoted\" name"))
    #expect((mark["mark"] as? [String: String]) == ["name": "a \"quoted\" name"])
    #expect(((try json(messages.digit("#")))["dtmf"] as? [String: String])?["digit"] == "#")
    #expect(try json(messages.stop())["event"] as? String == "stop")
  }

  @Test func `the peer's messages are read; what is none is a typed fault`() throws {
    let messages = try messages()
    func read(_ text: String) -> StreamMessages.Received { messages.read(text: Array(text.utf8)) }
    #expect(read(#"{"event":"media","streamSid":"MZ1","media":{"payload":"//8="}}"#) == .audio([0, 0]))
    #expect(read(#"{"event":"mark","streamSid":"MZ1","mark":{"name":"a"}}"#) == .mark("a"))
    #expect(read(#"{"event":"clear","streamSid":"MZ1"}"#) == .clear)
    #expect(read(#"{"event":"something"}"#) == .other)
    for text in ["", "nonsense", "[]", "{}", "{\"event\":7}"] { #expect(read(text) == .fault(.json), "\(text)") }
    for text in [#"{"event":"media"}"#, #"{"event":"media","media":{"payload":"***"}}"#] {
      #expect(read(text) == .fault(.base64))
    }
    #expect(read(#"{"event":"mark"}"#) == .fault(.mark))
    #expect(read(#"{"event":"mark","mark":{"name":"\#(String(repeating: "x", count: 257))"}}"#) == .fault(.mark))
    #expect(messages.read(binary: [1, 2]) == .fault(.wrongFormat))
    let linear = try self.messages(.pcm8)
    #expect(linear.read(binary: [1, 0, 0xff, 0xff]) == .audio([1, -1]) && linear.read(binary: [1, 2, 3]) == .fault(.oddLength))
    #expect(linear.read(text: Array(#"{"event":"media","media":{"payload":"//8="}}"#.utf8)) == .fault(.wrongFormat))
  }

  @Test(arguments: 0..<200) func `octets of any kind are read without harm`(seed: Int) throws {
    let messages = try messages()
    var random = SplitMix64(seed: UInt64(seed))
    var text = Array(#"{"event":"media","streamSid":"MZ1","media":{"payload":"//8="},"mark":{"name":"a"}}"#.utf8)
    for _ in 0..<4 { text[Int(random.next() % UInt64(text.count))] = UInt8(truncatingIfNeeded: random.next()) }
    _ = messages.read(text: text)
    _ = try self.messages(.pcm16).read(binary: text)
  }

  @Test func `an upgrade is only one with 101, our key's accept and no extension`() {
    let key = "dGhlIHNhbXBsZSBub25jZQ=="
    let good =
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
    #expect(UpgradeAnswer.fault(good, key: key) == nil)
    #expect(UpgradeAnswer.fault(good.replacing("101", with: "403"), key: key) == "it answered 403")
    #expect(UpgradeAnswer.fault(good.replacing("s3pP", with: "xxxx"), key: key) != nil)
    #expect(UpgradeAnswer.fault(good.replacing("WebSocket\r\n", with: "h2c\r\n"), key: key) != nil)
    #expect(UpgradeAnswer.fault(good.replacing("\r\n\r\n", with: "\r\nSec-WebSocket-Extensions: x\r\n\r\n"), key: key) != nil)
    for text in ["", "nonsense", "HTTP/1.0 101 x\r\n\r\n", "HTTP/1.1\r\n\r\n", "HTTP/1.1 101\r\nno colon\r\n\r\n"] {
      #expect(UpgradeAnswer.fault(text, key: key) != nil)
    }
    let request = String(
      decoding: UpgradeAnswer.request(host: "bot.example:81", path: "/a?b=c", key: key, token: "t"), as: UTF8.self)
    #expect(
      request.hasPrefix("GET /a?b=c HTTP/1.1\r\nHost: bot.example:81\r\n") && request.contains("\r\nAuthorization: Bearer t\r\n"))
  }
}
