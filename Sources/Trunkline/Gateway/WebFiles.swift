import CWebFiles

/// The web phone's files, embedded in the binary: the page, and the browser client's package that it stands on.
enum WebFiles {
  struct File {
    let path: String
    let contentType: String
    let bytes: [UInt8]
  }

  /// Where the service worker is served.
  static let serviceWorker = "/service-worker.js"

  /// Names the files that this binary serves, at `version`: a page that was loaded from another one knows that it is old. FNV-1a of all octets.
  static let version: String = {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for index in 0..<cweb_file_count {
      for octet in UnsafeBufferPointer(start: cweb_files[index].octets, count: cweb_files[index].length) {
        hash = (hash ^ UInt64(octet)) &* 0x100_0000_01b3
      }
    }
    let digits = String(hash, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }()

  static let all = UnsafeBufferPointer(start: cweb_files, count: cweb_file_count).map { file in
    File(
      path: String(cString: file.path), contentType: String(cString: file.content_type),
      bytes: [UInt8](UnsafeBufferPointer(start: file.octets, count: file.length)))
  }
}
