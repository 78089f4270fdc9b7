import Bytes
import Foundation
import Logging
import Platform
import Synchronization
import Telemetry
import Testing

@Suite struct LogTests {
  /// What a logger writes through a sink into a pipe.
  private func lines(_ body: (Logger) -> Void, counted: (UInt64) -> Void = { _ in }) throws -> [[String: Any]] {
    let pipe = Pipe()
    let sink = try LogSink(fd: pipe.fileHandleForWriting.fileDescriptor)
    let logger = Logger(label: "test") { JSONLogHandler(label: $0, sink: sink, level: LogLevel(.debug)) }
    body(logger)
    sink.stop()
    counted(sink.omitted.value)
    try pipe.fileHandleForWriting.close()
    let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    return try text.split(separator: "\n").map { line in
      try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }
  }

  @Test func `the level of a module changes while its loggers are in use, and a logger's own level stays its own`() throws {
    let levels = LogLevels(.info)
    let logger = Logger(label: "sip") { [levels] in
      JSONLogHandler(label: $0, sink: try! LogSink(fd: 2), level: levels.level(of: $0))
    }
    var own = logger
    own.logLevel = .error
    #expect(logger.logLevel == .info && levels.all == ["sip": .info])
    #expect(levels.set("sip", .debug) && !levels.set("nobody", .debug))
    #expect(logger.logLevel == .debug && own.logLevel == .error)
  }

  @Test func `a line is one JSON object with its metadata`() throws {
    let out = try lines { logger in
      var logger = logger
      logger[metadataKey: "call"] = "c-1"
      logger.info("call \"parked\"\n\u{1b}[0m", metadata: ["trunk": "carrier", "level": "9"])
      logger.trace("below the level")
    }
    #expect(out.count == 1)
    let line = try #require(out.first)
    #expect(line["msg"] as? String == "call \"parked\"\n\u{1b}[0m")
    #expect(line["level"] as? String == "info" && line["level_"] as? String == "9")
    #expect(line["call"] as? String == "c-1" && line["trunk"] as? String == "carrier" && line["label"] as? String == "test")
    let stamp = try #require(line["ts"] as? String)
    let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    let parsed = try style.parse(stamp)
    #expect(abs(parsed.timeIntervalSinceNow) < 60)
  }

  @Test
  func
    `one user's refused calls are 20 lines at once and then two a second, others' are written, and what is left out is counted`()
    throws
  {
    var omitted: UInt64 = 0
    let out = try lines { logger in
      for number in 0..<2_000 { logger.notice("call refused", metadata: ["user": "mallory", "call": "\(number)"]) }
      logger.notice("call refused", metadata: ["user": "alice"])
      logger.notice("login refused", metadata: ["user": "mallory"])
      for number in 0..<100 { logger.info("call ended", metadata: ["user": "mallory", "call": "\(number)"]) }
      for number in 0..<100 {
        logger.warning("the configuration is probably not what was meant", metadata: ["problem": "\(number)"])
      }
    } counted: {
      omitted = $0
    }
    let refused = out.filter { $0["msg"] as? String == "call refused" }
    let mallory = refused.filter { $0["user"] as? String == "mallory" }
    #expect(mallory.count >= 20 && mallory.count < 200 && refused.count == mallory.count + 1)
    #expect(
      out.count { $0["msg"] as? String == "login refused" } == 1 && out.count { $0["msg"] as? String == "call ended" } == 100)
    #expect(out.count { $0["problem"] != nil } == 100)
    let rest = try #require(out.last)
    #expect(rest["msg"] as? String == "lines like this were left out" && rest["by"] as? String == "mallory")
    let told = mallory.compactMap { ($0["omitted"] as? String).flatMap(UInt64.init) }.reduce(0, +)
    #expect(omitted == 2_000 - UInt64(mallory.count) && told + (UInt64(rest["omitted"] as? String ?? "") ?? 0) == omitted)
  }

  @Test func `secrets are masked`() throws {
    let out = try lines { logger in
      logger.info("x", metadata: ["token": "abc", "Authorization": "Bearer abc", "number": "\(Redacted("+15551230001"))"])
    }
    let line = try #require(out.first)
    #expect(line["token"] as? String == "‹redacted›" && line["Authorization"] as? String == "‹redacted›")
    #expect(line["number"] as? String == "‹redacted›")
  }

  @Test func `long messages and many fields are cut`() throws {
    let out = try lines { logger in
      var metadata: Logger.Metadata = [:]
      for index in 0..<100 { metadata["k\(index)"] = "\(String(repeating: "v", count: 5_000))" }
      logger.info("\(String(repeating: "m", count: 100_000))", metadata: metadata)
    }
    let line = try #require(out.first)
    #expect(line.count == 4 + 32)
    #expect((line["msg"] as? String)?.count == 2_049)
    #expect((line["k0"] as? String)?.count == 513)
  }

  @Test func `a pipe that is full and that nobody reads does not hold the end up`() throws {
    let pipe = Pipe()
    let sink = try LogSink(fd: pipe.fileHandleForWriting.fileDescriptor)
    let logger = Logger(label: "test") { JSONLogHandler(label: $0, sink: sink) }
    for _ in 0..<12_000 { logger.info("\(String(repeating: "m", count: 100))") }
    sink.stop()
    #expect(sink.dropped.value > 1_000)
    withExtendedLifetime(pipe) {}
  }

  @Test func `a descriptor that is closed costs the lines and nothing else`() throws {
    let pipe = Pipe()
    let descriptor = pipe.fileHandleForWriting.fileDescriptor
    let sink = try LogSink(fd: descriptor)
    try pipe.fileHandleForReading.close()
    let logger = Logger(label: "test") { JSONLogHandler(label: $0, sink: sink) }
    ProcessSignals.ignoreBrokenPipes()
    for _ in 0..<10 { logger.info("lost") }
    sink.stop()
    #expect(sink.dropped.value >= 10)
    withExtendedLifetime(pipe) {}
  }

  @Test func `a pipe nobody reads does not stop the caller: lines are dropped, counted and told`() throws {
    let pipe = Pipe()
    let sink = try LogSink(fd: pipe.fileHandleForWriting.fileDescriptor)
    let logger = Logger(label: "test") { JSONLogHandler(label: $0, sink: sink) }
    // 64 KiB fit the pipe and 8,192 lines the box: many more than both
    for _ in 0..<12_000 { logger.info("\(String(repeating: "m", count: 100))") }
    #expect(sink.dropped.value > 1_000)
    let heard = Mutex(Data())
    let reader = try NamedThread.start(name: "reader") {
      let data = pipe.fileHandleForReading.readDataToEndOfFile()
      heard.withLock { $0 = data }
    }
    sink.stop()
    try pipe.fileHandleForWriting.close()
    reader.join()
    #expect(heard.withLock { String(decoding: $0, as: UTF8.self) }.contains("log lines were dropped"))
  }
}
