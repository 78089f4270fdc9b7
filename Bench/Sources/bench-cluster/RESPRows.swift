import BenchKit
import CHiredis
import Foundation
import RESP

/// A `locate` written and its reply read: ours, and hiredis with nothing around it. Instructions by callgrind.
enum RESPRows {
  private static let arguments: [[UInt8]] = [
    "EVALSHA", "d3f1b7d1bb1d0f5e9f8c7b6a5d4c3b2a1f0e9d8c", "3", "tl:{u:alice@example.com}:where",
    "tl:{u:alice@example.com}:devices",
    "tl:{u:alice@example.com}:calls", "7f0c2f0e-6a1d-4f0e-8f57-0d7c3f9b1a10", "n1.1790000000000",
    #""v":1,"i":"n1.1790000000000","d":"incoming"}"#, "256",
  ].map { Array($0.utf8) }

  /// Two devices with whereabouts and registration each, and the call that was entered.
  private static let reply: [UInt8] = {
    let whereabouts =
      #"{"v":1,"i":"n2.1790000000000","s":"b4f0c9a1d2e3f4a5b6c7d8","t":"bg","c":["nodes","wake","transfer"],"a":["default"]}"#
    let device =
      #"{"w":1790000000000,"v":1,"p":"ios","m":"iPhone15,3","o":"18.1","k":"1.4.0","b":[{"k":"apns","t":"\#(String(repeating: "0f", count: 32))","e":"production","o":"com.example.phone.voip","s":"\#(String(repeating: "A", count: 43))","r":1790000000000}]}"#
    let call = #"{"n":1,"v":1,"i":"n1.1790000000000","d":"incoming"}"#
    func bulk(_ text: String) -> String { "$\(text.utf8.count)\r\n\(text)\r\n" }
    func array(_ elements: [String]) -> String { "*\(elements.count)\r\n\(elements.joined())" }
    let ids = ["0b0e8d8a-43cf-4d0f-9d3f-1f2b8a4c7e01", "1c0e8d8a-43cf-4d0f-9d3f-1f2b8a4c7e01"]
    return Array(
      array([
        array(ids.flatMap { [bulk($0), bulk(whereabouts)] }), array(ids.flatMap { [bulk($0), bulk(device)] }),
        array([bulk("7f0c2f0e-6a1d-4f0e-8f57-0d7c3f9b1a10"), bulk(call)]),
      ]).utf8)
  }()

  static func add(to bench: Bench) throws {
    let name = "RESP: a locate written and its reply read"
    guard bench.mayWant(name) else { return }
    let ours = BenchWork("ours") { loop in
      guard let reader = RESPReader() else { return }
      var unsent: [UInt8] = []
      loop.run { _ in
        unsent.removeAll(keepingCapacity: true)
        var command = RESPCommand()
        for argument in arguments { command.add(argument) }
        command.write(to: &unsent)
        _ = reply.withUnsafeBytes { try? reader.append($0) }
        let value = try? reader.next()
        return UInt64(unsent.count + (value?.elements?.count ?? 0))
      }
    }
    let bare = BenchWork("hiredis") { loop in
      guard let reader = redisReaderCreate() else { return }
      defer { redisReaderFree(reader) }
      let texts = arguments.map { $0.map { CChar(bitPattern: $0) } }
      var lengths = texts.map(\.count)
      loop.run { _ in
        var written: UnsafeMutablePointer<CChar>?
        var pointers = texts.map { $0.withUnsafeBufferPointer { $0.baseAddress } }
        let count = redisFormatCommandArgv(&written, Int32(texts.count), &pointers, &lengths)
        redisFreeCommand(written)
        reply.withUnsafeBufferPointer { bytes in
          _ = bytes.withMemoryRebound(to: CChar.self) { redisReaderFeed(reader, $0.baseAddress, $0.count) }
        }
        var value: UnsafeMutableRawPointer?
        _ = redisReaderGetReply(reader, &value)
        let elements = value?.assumingMemoryBound(to: redisReply.self).pointee.elements ?? 0
        freeReplyObject(value)
        return UInt64(Int(count) + Int(elements))
      }
    }
    let row = try bench.compare(
      name, operations: 5_000, ours: ours, limit: bare, oursMayAllocate: true, sameResult: true,
      note: "EVALSHA with 3 keys; two devices and a call in the reply, \(reply.count) bytes")
    guard let row, let ours = row.ours.instructions, let limit = row.limit?.instructions else { return }
    bench.add(
      BenchRow(
        name + ": instructions", unit: "instructions", ours: BenchFigure("ours", ours), limit: BenchFigure("hiredis", limit),
        goal: .atMost(1.2, of: .limit)))
  }
}
