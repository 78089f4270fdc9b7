import AppServer
import Control
import HTTP
import Store
import TrunklineAppProtocol
import WebServer

/// Directories and stored data of users, at the admin port.
///
///     GET    /v1/directory                 {"directories":[{"scope":"user:alice","version":…,"entries":…}]}
///     PUT    /v1/directory/user:alice      CSV or JSON lines: replaces it
///     POST   /v1/directory/account:work    the same: changes the listed numbers, `remove` included
///     DELETE /v1/directory/user:alice      empties it
///     DELETE /v1/users/alice/data          the history and the directory of the user, devices and grants
struct DirectoryHandlers: Sendable {
  let service: DirectoryService
  let asker: Asker
  let imports = ImportSlots()

  static func isScope(_ text: String) -> Bool {
    ["user:", "account:"].contains { text.hasPrefix($0) && text.utf8.count > $0.utf8.count }
      && text.utf8.count <= Store.Limits.directoryNameBytes
  }
  private static var away: APIError { APIError(.overload, "the shared store does not answer; nothing was changed: try again") }
  private static var badScope: AdminResponse {
    APIError(.badRequest, "a directory is user:ID or account:NAME, at most 256 bytes").response
  }

  func list(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) {
    struct Row: Encodable {
      var scope: String
      var version: Int
      var entries: Int
      /// In a cluster: the shared store's version; 0: none.
      var sharedStore: Int?
    }
    struct Body: Encodable { var directories: [Row] }
    let isShared = service.isShared
    service.directories { [asker] result in
      asker.run(for: request.client) {
        switch result {
        case .success(let rows):
          answer(
            .json(
              200,
              Body(
                directories: rows.map {
                  Row(scope: $0.name, version: $0.version, entries: $0.entries, sharedStore: isShared ? $0.sharedStore : nil)
                })))
        case .failure(.busy): answer(APIError(.overload, "busy").response)
        case .failure: answer(APIError(.server, "cannot read the directories").response)
        }
      }
    }
  }

  func empty(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) {
    let scope = request.argument("scope")
    guard Self.isScope(scope) else { return answer(Self.badScope) }
    var empty = ContactList()
    try? empty.finish()
    store(empty, in: scope, replaces: true, request, answer)
  }

  func write(_ request: AdminRequest, replaces: Bool, _ answer: @escaping AdminRequest.Answer) {
    let scope = request.argument("scope")
    guard Self.isScope(scope) else { return answer(Self.badScope) }
    guard let body = request.sink as? ContactImport else { return answer(APIError(.server, "the body was not read").response) }
    // `finish` sorts the contacts, but not on a thread that answers other requests
    body.finish { [self] result in
      switch result {
      case .success(let list):
        // the next import waits until this one is stored
        store(list, in: scope, replaces: replaces, request) { response in
          body.release()
          answer(response)
        }
      case .failure(let error): answer(error.response)
      }
    }
  }

  /// Reads the body of a request for `write`.
  func sink(_ head: RequestHead, replaces: Bool) -> any BodySink {
    let isJSON = head.first("content-type")?.contains("json") ?? false
    return ContactImport(imports.claim(), ContactReader(isJSON ? .jsonLines : .csv, acceptsRemovals: !replaces))
  }

  private func store(
    _ list: ContactList, in scope: String, replaces: Bool, _ request: AdminRequest, _ answer: @escaping AdminRequest.Answer
  ) {
    service.handle(list, into: scope, replaces: replaces) { [asker] result in
      asker.run(for: request.client) {
        switch result {
        case .success(let change): answer(.json(200, change))
        case .failure(.busy): answer(APIError(.overload, "busy").response)
        case .failure(.store(let why)): answer(APIError(.badState, "\(why); nothing was changed").response)
        case .failure(.conflict):
          answer(
            APIError(.badState, "another request changed the directory meanwhile; nothing was changed: import it again").response)
        case .failure(.sharedStore): answer(Self.away.response)
        }
      }
    }
  }

  func erase(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) {
    let user = request.argument("user")
    struct Body: Encodable {
      var calls: Int
      var contacts: Int
      var devices: Int
      var grants: Int
      var remains = ErasedUser.remains
    }
    service.erase(user: user) { [asker] result in
      let erased: DirectoryFile.Erased
      switch result {
      case .success(let all): erased = all
      case .failure(.sharedStore), .failure(.conflict):
        return answer(APIError(.overload, "the shared store does not answer: not all was erased; repeat the request").response)
      case .failure: return answer(APIError(.server, "the history cannot be written; nothing was erased").response)
      }
      asker.ask(.operation(.forget(user: user)), for: request.client) { done in
        guard case .operation(.forgotten(let devices, let grants))? = done else {
          return answer(APIError(.overload, "history and directory were erased; repeat the request for the rest").response)
        }
        answer(.json(200, Body(calls: erased.calls, contacts: erased.contacts, devices: devices, grants: grants)))
      }
    }
  }
}

enum ErasedUser {
  /// The data that erasing a user does not delete.
  static let remains =
    "call records (records.file), journals of calls and events, logs and traces: they are kept for their own times and deleted with their files"
}
