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

  static let all = UnsafeBufferPointer(start: cweb_files, count: cweb_file_count).map { file in
    File(
      path: String(cString: file.path), contentType: String(cString: file.content_type),
      bytes: [UInt8](UnsafeBufferPointer(start: file.octets, count: file.length)))
  }
}
