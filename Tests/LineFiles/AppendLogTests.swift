import Foundation
import Testing

@testable import LineFiles

/// A folder of a test's files, removed with it.
final class Folder {
  let path = FileManager.default.temporaryDirectory.appendingPathComponent("lines-\(UUID().uuidString)").path
  init() { try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }
  deinit { try? FileManager.default.removeItem(atPath: path) }

  func write(_ octets: [UInt8], to name: String) throws { try Data(octets).write(to: URL(fileURLWithPath: path + "/" + name)) }
  func read(_ name: String) -> [UInt8] { [UInt8](FileManager.default.contents(atPath: path + "/" + name) ?? Data()) }
}

func line(_ text: String) -> [UInt8] { Array((text + "\n").utf8) }

/// Lines of several lengths, with an empty one.
let sample = ["first", "", "a", String(repeating: "long ", count: 20), "last"].map(line)

/// `body` while no file of this process grows beyond `bytes`: a write that would gets a part of its octets into the file, as on a
/// full disk. Other tests write no file as long.
func withLongestFile(_ bytes: Int, _ body: () throws -> Void) throws {
  let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
  signal(SIGXFSZ, SIG_IGN)
  var before = rlimit()
  getrlimit(resource, &before)
  var limit = rlimit(rlim_cur: rlim_t(bytes), rlim_max: before.rlim_max)
  try #require(setrlimit(resource, &limit) == 0)
  defer { setrlimit(resource, &before) }
  try body()
}

@Suite struct AppendLogTests {
  private let folder = Folder()
  private var path: String { folder.path + "/log" }

  private func open(isEmptied: Bool = false) throws(AppendLogError) -> AppendLog {
    try AppendLog(path: path, named: "the log", mode: 0o600, isEmptied: isEmptied)
  }

  @Test func `a process killed at any octet leaves whole lines, and the next one continues after them`() throws {
    let octets = sample.flatMap { $0 }
    for cut in 0...octets.count {
      try folder.write(Array(octets[..<cut]), to: "log")
      let whole = (octets[..<cut].lastIndex(of: 0x0a) ?? -1) + 1
      var log = try open()
      #expect(log.size == whole && folder.read("log") == Array(octets[..<whole]), "cut at \(cut)")
      try log.append(line("next"))
      #expect(folder.read("log") == octets[..<whole] + line("next") && log.size == whole + 5, "cut at \(cut)")
    }
  }

  @Test(arguments: [65_535, 65_536, 65_537, 200_000])
  func `an incomplete line of any length is cut off, also one that is all of the file`(count: Int) throws {
    let torn = [UInt8](repeating: 65, count: count)
    for whole in [[], line("whole"), line(String(repeating: "b", count: count))] {
      try folder.write(whole + torn, to: "log")
      let log = try open()
      #expect(log.size == whole.count && folder.read("log") == whole)
    }
  }

  @Test func `only its owner reads it, and an emptied one has no line of before`() throws {
    try folder.write(line("old"), to: "log")
    var log = try open(isEmptied: true)
    try log.append(line("new"))
    #expect(folder.read("log") == line("new") && log.size == 4)
    _ = try AppendLog(path: folder.path + "/made", named: "the log", mode: 0o600)
    #expect(try FileManager.default.attributesOfItem(atPath: folder.path + "/made")[.posixPermissions] as? Int == 0o600)
  }

  @Test(.enabled(if: FileManager.default.fileExists(atPath: "/dev/full")))
  func `a full disk is an error that names the file, and the append can be repeated`() throws {
    var log = try AppendLog(path: "/dev/full", named: "the log", mode: 0o600)
    for _ in 0..<2 {
      do throws(AppendLogError) {
        try log.append(line("x"))
        Issue.record("written")
      } catch { #expect(error.description == "cannot write the log /dev/full: the disk is full") }
    }
    #expect(log.size == 0)
  }

  @Test func `a disk that is full in the middle of an append has none of its lines`() throws {
    let longest = 1 << 32
    for room in 0...11 {
      // sparse: it needs no space on the disk
      try folder.write([], to: "log")
      try #require(truncate(path, off_t(longest - room - 1)) == 0)
      let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
      try file.seekToEnd()
      try file.write(contentsOf: [0x0a])
      try file.close()
      var log = try open()
      try withLongestFile(longest) {
        #expect(log.size == longest - room)
        for _ in 0..<2 { #expect(isRefused { try log.append(line("one") + line("two") + line("six")) }, "room for \(room)") }
        #expect(try attributes() == longest - room && log.size == longest - room, "room for \(room)")
        if room >= 4 { try log.append(line("one")) }
      }
      try log.append(line("later"))
      #expect(try attributes() == longest - room + (room >= 4 ? 10 : 6))
    }
  }

  @Test func `while octets of a failed append cannot be cut off, no line is written after them`() throws {
    let longest = 1 << 32
    // Swift's Glibc has no `memfd_create`. 2: MFD_ALLOW_SEALING
    let create = try #require(dlsym(nil, "memfd_create"))
    let file = unsafeBitCast(create, to: (@convention(c) (UnsafePointer<CChar>, UInt32) -> Int32).self)("log", 2)
    try #require(file >= 0)
    defer { close(file) }
    try #require(ftruncate(file, off_t(longest - 5)) == 0 && pwrite(file, "\n", 1, off_t(longest - 6)) == 1)
    var log = try AppendLog(path: "/proc/self/fd/\(file)", named: "the log", mode: 0o600)
    try #require(fcntl(file, 1033, 2) == 0)  // F_ADD_SEALS, F_SEAL_SHRINK
    try withLongestFile(longest) { #expect(isRefused { try log.append(line("a line")) }) }
    #expect(isRefused { try log.append(line("b")) } && lseek(file, 0, SEEK_END) == longest)
  }

  private func attributes() throws -> Int? { try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int }

  private func isRefused(_ body: () throws -> Void) -> Bool {
    do { try body() } catch { return true }
    return false
  }

  @Test func `a moved file stays as it is, and its successor gets the next lines`() throws {
    var log = try open()
    try log.append(line("one"))
    try log.reopenIfMoved()
    try log.append(line("two"))
    #expect(rename(path, folder.path + "/log.1") == 0)
    try log.append(line("three"))
    try log.reopenIfMoved()
    try log.append(line("four"))
    #expect(log.size == 5 && folder.read("log") == line("four"))
    #expect(folder.read("log.1") == line("one") + line("two") + line("three"))
    // removed, and a file of its name with lines
    unlink(path)
    try folder.write(line("others"), to: "log")
    try log.reopenIfMoved()
    try log.append(line("five"))
    #expect(folder.read("log") == line("others") + line("five") && log.size == 12)
  }

  @Test func `a file that was cut in place is continued at its end`() throws {
    var log = try open()
    try log.append(line("one") + line("two"))
    #expect(truncate(path, 4) == 0)
    try log.append(line("three"))
    #expect(folder.read("log") == line("one") + line("three"))
  }

  @Test func `a replaced file has the new lines only, and so does the one that opens it next`() throws {
    var log = try open()
    try log.append(sample.flatMap { $0 })
    log.replace(with: line("kept"))
    try log.append(line("next"))
    #expect(folder.read("log") == line("kept") + line("next") && log.size == 10)
    #expect(!FileManager.default.fileExists(atPath: path + ".new"))
    // the folder cannot have the new file: the old one stays
    try FileManager.default.createDirectory(atPath: path + ".new", withIntermediateDirectories: true)
    log.replace(with: line("lost"))
    try log.append(line("more"))
    #expect(folder.read("log") == line("kept") + line("next") + line("more"))
    log.replace(with: [])
    #expect(log.size == 0 && folder.read("log").isEmpty)
  }

  @Test func `contents are all of it, or its end`() throws {
    var log = try open()
    #expect(try log.contents().isEmpty)
    let octets = sample.flatMap { $0 }
    try log.append(octets)
    #expect(try log.contents() == octets)
    for most in 0...octets.count { #expect(try log.contents(last: most) == octets.suffix(most)) }
  }

  @Test func `a file that cannot be opened says why`() {
    do throws(AppendLogError) {
      _ = try AppendLog(path: folder.path + "/none/log", named: "the log", mode: 0o600)
      Issue.record("opened")
    } catch { #expect(error.description == "cannot open the log \(folder.path)/none/log: No such file or directory") }
  }
}
