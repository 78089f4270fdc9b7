import CWebFiles
import TrunklineBytes

/// The pages' files, embedded in the binary: the web phone with the browser client's package that it uses, and the status page.
enum WebFiles {
  struct File {
    let path: String
    let contentType: String
    var bytes: [UInt8]
  }

  /// The path of the service worker.
  static let serviceWorker = "/service-worker.js"

  /// Identifies the web phone's files that this binary serves, at `version`: a page that was loaded from another version
  /// detects that it is old. FNV-1a of all octets.
  static let version: String = {
    var hash = FNV1a()
    for index in 0..<cweb_phone_file_count {
      hash.add(UnsafeBufferPointer(start: cweb_phone_files[index].octets, count: cweb_phone_files[index].length))
    }
    return hexString(hash.value)
  }()

  /// The files of the app port.
  static let phone = files(cweb_phone_files, cweb_phone_file_count)
  /// The files of the admin port.
  static let status = files(cweb_status_files, cweb_status_file_count)

  private static func files(_ first: UnsafePointer<CWebFile>, _ count: Int) -> [File] {
    UnsafeBufferPointer(start: first, count: count).map { file in
      File(
        path: String(cString: file.path), contentType: String(cString: file.content_type),
        bytes: [UInt8](UnsafeBufferPointer(start: file.octets, count: file.length)))
    }
  }
}
