import Foundation
import Testing
import TrunklineBytes

@testable import LineFiles

/// A reader that expectations can use, which copy what they check.
private final class Reading {
  private var lines: LineReader
  init(lineBytes: Int) { lines = LineReader(lineBytes: lineBytes) }

  var offset: Int64 { lines.offset }
  var isOpen: Bool { lines.isOpen }
  var hasLine: Bool { lines.hasLine }
  var hasRest: Bool { lines.hasRest }
  var size: Int? { lines.status.map { Int($0.st_size) } }
  func open(_ path: String) -> Bool { lines.open(path) }
  func seek(_ offset: Int64) { lines.seek(offset) }
  func next() -> LineReader.Step { lines.next() }
  func refill() -> Bool { lines.refill() }
  func octets(at offset: Int64, count: Int) -> [UInt8] { lines.octets(at: offset, count: count) }

  /// Each step up to the end, with the offset after it.
  func rest() -> [String] {
    var out: [String] = []
    while true {
      switch lines.next() {
      case .line(let line): out.append(String(decoding: line, as: UTF8.self) + "@\(lines.offset)")
      case .tooLong: out.append("too long@\(lines.offset)")
      case .end: return out
      }
    }
  }
}

@Suite struct LineReaderTests {
  private let folder = Folder()
  private var path: String { folder.path + "/log" }

  private func grow(_ octets: some Sequence<UInt8>) throws {
    let file = try #require(fopen(path, "a"))
    defer { fclose(file) }
    let octets = Array(octets)
    #expect(fwrite(octets, 1, octets.count, file) == octets.count)
  }

  @Test(arguments: 5...40) func `a file that grows by single octets gives each line once, whatever the reader's size`(
    lineBytes: Int
  ) throws {
    try folder.write([], to: "log")
    let reader = Reading(lineBytes: lineBytes)
    #expect(reader.open(path))
    var (found, offset): ([String], Int) = ([], 0)
    for octet in sample.joined() {
      try grow([octet])
      found += reader.rest()
      #expect(reader.hasRest == (octet != 0x0a) && !reader.hasLine)
    }
    let expected = sample.map { line in
      offset += line.count
      return (line.count > lineBytes + 1 ? "too long" : String(decoding: line.dropLast(), as: UTF8.self)) + "@\(offset)"
    }
    #expect(found == expected)
    // and at once, by another reader
    let second = Reading(lineBytes: lineBytes)
    #expect(second.open(path) && second.rest() == expected)
  }

  @Test(arguments: -1...1) func `a line as long as the bound is read, and a longer one is skipped once`(more: Int) throws {
    let long = String(repeating: "x", count: 64 + more)
    for around in [[], [line("short")]] {
      try folder.write((around + [line(long)] + around).flatMap { $0 }, to: "log")
      let reader = Reading(lineBytes: 64)
      #expect(reader.open(path))
      let texts = reader.rest().map { $0.prefix { $0 != "@" } }
      let short = around.map { _ in "short"[...] }
      #expect(texts == short + [more > 0 ? "too long" : long[...]] + short)
    }
  }

  @Test func `an incomplete line that was cut off and written anew is read as it is now`() throws {
    for next in ["b", "beta", "a very much longer line than the torn one"] {
      try folder.write(line("one") + Array("torn".utf8), to: "log")
      let (early, late) = (Reading(lineBytes: 100), Reading(lineBytes: 100))
      #expect(early.open(path) && early.rest() == ["one@4"] && early.hasRest)
      #expect(!early.refill())
      // the writer's repair, and its next line
      var log = try AppendLog(path: path, named: "the log", mode: 0o600)
      try log.append(line(next))
      let end = log.size
      #expect(early.refill() && early.rest() == ["\(next)@\(end)"])
      #expect(late.open(path) && late.rest() == ["one@4", "\(next)@\(end)"])
    }
  }

  @Test func `two readers at different lines do not affect each other, nor the writer`() throws {
    var log = try AppendLog(path: path, named: "the log", mode: 0o600)
    let (first, second) = (Reading(lineBytes: 64), Reading(lineBytes: 200))
    #expect(first.open(path) && second.open(path))
    var random = SplitMix64(seed: 7)
    var (written, one, two): ([String], [String], [String]) = ([], [], [])
    for number in 0..<300 {
      let texts = (0..<Int.random(in: 1...4, using: &random)).map { "\(number).\($0)" }
      try log.append(texts.flatMap(line))
      written += texts
      if Bool.random(using: &random) { one += first.rest() }
      if Int.random(in: 0..<10, using: &random) == 0 { two += second.rest() }
    }
    one += first.rest()
    two += second.rest()
    #expect(one == two && one.map { $0.prefix { $0 != "@" } } == written.map { $0[...] })
  }

  @Test func `a reader continues at any offset that it stated, in the moved file and in its successor`() throws {
    var log = try AppendLog(path: path, named: "the log", mode: 0o600)
    try log.append(sample.flatMap { $0 })
    let reader = Reading(lineBytes: 200)
    #expect(reader.open(path))
    let all = reader.rest()
    for (number, step) in all.enumerated() {
      let offset = try #require(step.split(separator: "@").last.flatMap { Int64($0) })
      reader.seek(offset)
      #expect(reader.rest() == Array(all[(number + 1)...]))
    }
    // rotation in the middle of reading
    reader.seek(0)
    _ = reader.next()
    #expect(rename(path, path + ".1") == 0)
    try log.reopenIfMoved()
    try log.append(line("after"))
    #expect(reader.rest() == Array(all.dropFirst()), "the moved file to its end")
    #expect(reader.open(path) && reader.rest() == ["after@6"])
    #expect(reader.open(path + ".1") && reader.rest() == all, "opened at its beginning")
  }

  @Test func `what is not a file that can be read leaves the former one open`() throws {
    try folder.write(line("one"), to: "log")
    let reader = Reading(lineBytes: 64)
    #expect(!reader.open(folder.path + "/none") && !reader.open(folder.path) && !reader.open("/dev/null"))
    #expect(reader.next() == .end && !reader.isOpen && reader.size == nil && reader.octets(at: 0, count: 4).isEmpty)
    #expect(reader.open(path) && !reader.open(folder.path + "/none"))
    #expect(reader.isOpen && reader.rest() == ["one@4"])
    #expect(reader.octets(at: 1, count: 9) == Array("ne\n".utf8) && reader.octets(at: 9, count: 9).isEmpty)
  }
}
