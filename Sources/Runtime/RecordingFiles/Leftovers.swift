import Glibc
import TrunklinePlatform

/// Unfinished files of a process that was killed.
enum Leftovers {
  /// Gives each file its final name. The sizes in the header of a WAV file are corrected; the whole pages of an Ogg file can be
  /// played as they are. A file without audio is removed. Returns the names. No other recorder may use the folder.
  static func finish(in folder: String) -> [String] {
    guard let directory = opendir(folder) else { return [] }
    defer { closedir(directory) }
    var found: [String] = []
    while found.count < Limits.leftovers, let entry = readdir(directory) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      guard name.hasSuffix(OutputFile.ending) else { continue }
      let whole = String(name.dropLast(OutputFile.ending.utf8.count))
      if whole.hasSuffix(".wav") || whole.hasSuffix(".ogg") { found.append(whole) }
    }
    return found.sorted().filter { finish(folder + "/" + $0) }
  }

  private static func finish(_ path: String) -> Bool {
    let part = path + OutputFile.ending
    var status = stat()
    guard stat(part, &status) == 0 else { return false }
    let size = Int(status.st_size)
    guard size > WAVFormat.headerBytes else {
      unlink(part)
      return false
    }
    if path.hasSuffix(".wav"), !repair(part, size) { return false }
    return rename(part, path) == 0
  }

  /// Writes the sizes into the header of a WAV file that this recorder began.
  private static func repair(_ path: String, _ size: Int) -> Bool {
    let fd = open(path, O_RDWR | O_CLOEXEC)
    guard fd >= 0 else { return false }
    defer { close(fd) }
    var header = [UInt8](repeating: 0, count: WAVFormat.headerBytes)
    guard pread(fd, &header, header.count, 0) == header.count else { return false }
    let rate = (24..<28).reversed().reduce(0) { $0 << 8 | Int(header[$1]) }
    let whole = (size - header.count) / 4 * 4
    let repaired = WAVFormat.header(rateHz: rate, dataBytes: whole)
    return pwrite(fd, repaired, repaired.count, 0) == repaired.count && ftruncate(fd, off_t(header.count + whole)) == 0
  }
}
