import Dispatch
import Foundation
package import Synchronization

/// The class of a lock, which defines what a thread may wait for while it holds the lock.
///
/// A thread takes locks in the order of their classes. While it holds a lock, it may take only locks of a later class,
/// or another lock of the last class. Therefore, a thread holding a lock shared by all keys never waits for the file of
/// one key. While it holds a lock of the engine, it never waits for the app. `withLockIfAvailable` takes a lock only if
/// it is free, so the thread never waits. It may be called for a lock of any class at any time.
package enum LockClass: Int, Sendable, CaseIterable {
    /// The holder may wait for the app, for example for the resolver of a source.
    case mayWaitForApp
    /// The holder may wait for the file of one key.
    case mayWaitForFile
    /// The holder may wait only for the catalog. The files of one key never delay it.
    case mayWaitForCatalog
    /// The holder never waits.
    case neverWaits

    /// Returns whether a thread that holds a lock of this class may wait for a lock of another class.
    package func mayTake(_ other: LockClass) -> Bool {
        other.rawValue > rawValue || self == .neverWaits && other == .neverWaits
    }
}

/// A mutex that belongs to a ``LockClass``. In debug builds, taking it checks the classes of the locks that the thread
/// holds. In release builds, it is equivalent to a `Mutex`.
package struct ClassedMutex<Value: ~Copyable>: ~Copyable, Sendable {
    @usableFromInline let mutex: Mutex<Value>
    #if DEBUG
    @usableFromInline let lockClass: LockClass
    #endif

    /// Creates a mutex that protects a value.
    @inlinable package init(_ value: consuming sending Value, _ lockClass: LockClass) {
        mutex = Mutex(value)
        #if DEBUG
        self.lockClass = lockClass
        #endif
    }

    /// Waits for the lock, and runs `body`.
    @inlinable package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        #if DEBUG
        HeldLocks.check(lockClass)
        HeldLocks.add(lockClass)
        defer { HeldLocks.remove(lockClass) }
        #endif
        return try mutex.withLock(body)
    }
}

/// A lock that belongs to a ``LockClass``, and that can also be tried without waiting. Waiting threads acquire the lock
/// in the order in which they started to wait.
///
/// `Mutex` also supports this, but not in all SDKs with which this package is built.
package final class TryableLock<Value>: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [DispatchSemaphore] = []
    }

    private let state = Mutex(State())
    // Only the thread that holds the lock uses the value.
    nonisolated(unsafe) private var value: Value
    #if DEBUG
    private let lockClass: LockClass
    #endif

    /// Creates a lock that protects a value.
    package init(_ value: Value, _ lockClass: LockClass) {
        self.value = value
        #if DEBUG
        self.lockClass = lockClass
        #endif
    }

    /// Waits for the lock, and runs `body`.
    package func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        #if DEBUG
        HeldLocks.check(lockClass)
        #endif
        let turn = state.withLock { state -> DispatchSemaphore? in
            guard state.isTaken else {
                state.isTaken = true
                return nil
            }
            let turn = DispatchSemaphore(value: 0)
            state.waiting.append(turn)
            return turn
        }
        turn?.wait()
        return try run(body)
    }

    /// Runs `body` if the lock is free; otherwise returns `nil` without waiting.
    package func withLockIfAvailable<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result? {
        let isTaken = state.withLock { state in
            guard !state.isTaken else { return false }
            state.isTaken = true
            return true
        }
        return isTaken ? try run(body) : nil
    }

    private func run<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        #if DEBUG
        HeldLocks.add(lockClass)
        defer { HeldLocks.remove(lockClass) }
        #endif
        defer {
            let next = state.withLock { state -> DispatchSemaphore? in
                guard !state.waiting.isEmpty else {
                    state.isTaken = false
                    return nil
                }
                return state.waiting.removeFirst()
            }
            next?.signal()
        }
        return try body(&value)
    }
}

#if DEBUG
/// The classes of the locks that the calling thread holds or is taking.
package enum HeldLocks {
    /// A thread's value contains the number of its locks of each class, in 8 bits each.
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let code = pthread_key_create(&key, nil)
        assert(code == 0, "the system has no more keys for thread-specific data")
        return key
    }()

    private static var counts: UInt {
        get { UInt(bitPattern: pthread_getspecific(key)) }
        set { pthread_setspecific(key, UnsafeRawPointer(bitPattern: newValue)) }
    }

    private static func unit(_ lockClass: LockClass) -> UInt { 1 << (8 * UInt(lockClass.rawValue)) }

    /// The classes of the locks that the calling thread holds.
    package static var classes: [LockClass] {
        let counts = counts
        return LockClass.allCases.filter { counts / unit($0) % 256 > 0 }
    }

    /// Asserts that the calling thread may wait for a lock of a class.
    package static func check(_ lockClass: LockClass) {
        for held in classes where !held.mayTake(lockClass) {
            assertionFailure("a thread that holds a lock of class \(held) waits for one of class \(lockClass)")
        }
    }

    /// Asserts that the calling thread may wait for input or output, as a holder of a lock of this class may.
    package static func checkWait(_ lockClass: LockClass) {
        for held in classes where held.rawValue > lockClass.rawValue {
            assertionFailure("a thread that holds a lock of class \(held) waits like one of class \(lockClass)")
        }
    }

    package static func add(_ lockClass: LockClass) { counts += unit(lockClass) }

    package static func remove(_ lockClass: LockClass) { counts -= unit(lockClass) }
}
#endif
