import Bytes
import CWebFiles

/// The pages' files, embedded in the binary: the web phone with the browser client's package that it stands on, and the status page.
enum WebFiles {
  struct File {
    let path: String
    let contentType: String
    var bytes: [UInt8]
  }

  /// Where the service worker is served.
  static let serviceWorker = "/service-worker.js"

  /// Names the web phone's files that this binary serves, at `version`: a page that was loaded from another one knows that it is old. FNV-1a of all octets.
  static let version: String = {
    var hash = FNV1a()
    for index in 0..<cweb_phone_file_count {
      hash.add(UnsafeBufferPointer(start: cweb_phone_files[index].octets, count: cweb_phone_files[index].length))
    }
    return hexString(hash.value)
  }()

  /// What the app port serves.
  static let phone = files(cweb_phone_files, cweb_phone_file_count)
  /// What the admin port serves.
  static let status = files(cweb_status_files, cweb_status_file_count)

  private static func files(_ first: UnsafePointer<CWebFile>, _ count: Int) -> [File] {
    UnsafeBufferPointer(start: first, count: count).map { file in
      File(
        path: String(cString: file.path), contentType: String(cString: file.content_type),
        bytes: [UInt8](UnsafeBufferPointer(start: file.octets, count: file.length)))
    }
  }
}
