// The names are Apple's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation

/// An image in memory, which consists of its size and its pixels.
///
/// This class replaces CoreGraphics' `CGImage` for reading pixels. An image cannot be drawn and has no color space. Its
/// colors are those that a screen expects (sRGB, or BT.709 as decoded).
public final class CGImage: Sendable {
    /// The number of pixels in a row.
    public let width: Int
    /// The number of rows.
    public let height: Int
    /// The number of bytes from the start of a row to the start of the next one, at least four times ``width``.
    public let bytesPerRow: Int
    /// The pixels, top row first.
    public let dataProvider: CGDataProvider?

    /// The number of bits in a color component, which is 8.
    public var bitsPerComponent: Int { 8 }
    /// The number of bits in a pixel, which is 32.
    public var bitsPerPixel: Int { 32 }
    /// The layout of a pixel: blue, green, red, and an unused byte.
    public var bitmapInfo: CGBitmapInfo { [.byteOrder32Little, CGBitmapInfo(rawValue: 6)] }

    init(_ picture: Picture) {
        width = picture.width
        height = picture.height
        bytesPerRow = picture.bytesPerRow
        dataProvider = CGDataProvider(picture.data)
    }
}

/// A provider of the bytes of an image.
public final class CGDataProvider: Sendable {
    /// All bytes of the image.
    public let data: Data?

    init(_ data: Data) { self.data = data }
}

/// The layout of a pixel, with CoreGraphics' raw values.
///
/// The lowest five bits specify the position of the alpha component. The value 6 means no alpha, with an unused first
/// byte.
public struct CGBitmapInfo: OptionSet, Sendable, Hashable {
    /// CoreGraphics' raw value for the layout.
    public let rawValue: UInt32
    /// Creates a layout from CoreGraphics' raw value.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// 32-bit pixels, least significant byte first.
    public static let byteOrder32Little = CGBitmapInfo(rawValue: 2 << 12)
    /// The bits for the position of the alpha component.
    public static let alphaInfoMask = CGBitmapInfo(rawValue: 0x1F)
}

extension Picture {
    /// Returns the image, scaled down to fit in a box if it is larger.
    ///
    /// If the width or height of the box is less than 1 or NaN, it does not limit the image.
    func scaled(toFit box: CGSize) -> Picture {
        func ratio(_ bound: Double, _ side: Int) -> Double { bound >= 1 ? min(bound / Double(side), 1) : 1 }
        func side(_ bound: Double, _ side: Int, _ scale: Double) -> Int {
            let length = max((Double(side) * scale).rounded(), 1)
            return Int(bound >= 1 ? min(length, bound.rounded(.down)) : length)
        }
        let scale = min(ratio(box.width, width), ratio(box.height, height))
        guard scale < 1 else { return self }
        return averaged(width: side(box.width, width, scale), height: side(box.height, height, scale)) ?? self
    }

    /// Returns the image scaled to a size. Each pixel is the average of the pixels that it replaces.
    private func averaged(width newWidth: Int, height newHeight: Int) -> Picture? {
        let newBytesPerRow = newWidth * Self.bytesPerPixel
        var target = Data(count: newBytesPerRow * newHeight)
        // The source column at which each target column starts, followed by the end of the last one.
        let columns: [Int] = (0...newWidth).map { $0 * width / newWidth }
        target.withUnsafeMutableBytes { (target: UnsafeMutableRawBufferPointer) in
            data.withUnsafeBytes { (source: UnsafeRawBufferPointer) in
                for y in 0..<newHeight {
                    let rows = (y * height / newHeight)..<max((y + 1) * height / newHeight, y * height / newHeight + 1)
                    for x in 0..<newWidth {
                        var blue = 0
                        var green = 0
                        var red = 0
                        for row in rows {
                            var pixel = row * bytesPerRow + columns[x] * Self.bytesPerPixel
                            for _ in columns[x]..<columns[x + 1] {
                                blue += Int(source[pixel])
                                green += Int(source[pixel + 1])
                                red += Int(source[pixel + 2])
                                pixel += Self.bytesPerPixel
                            }
                        }
                        let count = max(rows.count * (columns[x + 1] - columns[x]), 1)
                        let place = y * newBytesPerRow + x * Self.bytesPerPixel
                        target[place] = UInt8(clamping: blue / count)
                        target[place + 1] = UInt8(clamping: green / count)
                        target[place + 2] = UInt8(clamping: red / count)
                    }
                }
            }
        }
        return Picture(width: newWidth, height: newHeight, bytesPerRow: newBytesPerRow, data: target)
    }
}
