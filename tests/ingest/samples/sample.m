#import <Foundation/Foundation.h>
#import "Shop.h"
@import UIKit;

#define SHOP_LIMIT 10

typedef NS_ENUM(NSInteger, Kind) {
    KindFood,
    KindBook,
};

typedef struct { int x; } Point;

@class Basket;

// Prices things.
@protocol Pricing <NSObject>
@required
- (double)priceOf:(NSString *)name;
@property (nonatomic, readonly) NSString *currency;
@end

@interface Shop : NSObject <Pricing>
@property (nonatomic, strong) NSString *name;
- (instancetype)initWithName:(NSString *)name;
+ (Shop *)shared;
@end

@interface Shop (Extras)
- (void)close;
@end

@implementation Shop {
    int _count;
}

// Makes one.
- (instancetype)initWithName:(NSString *)name {
    if (self = [super init]) {
        _name = name;
        [self close];
    }
    return self;
}

+ (Shop *)shared {
    static Shop *one;
    return one ?: [[Shop alloc] initWithName:@"main"];
}

- (double)priceOf:(NSString *)name { return helper(1); }

- (void)add:(NSString *)name price:(double)price { NSLog(@"close %@", name); }

@end

@implementation Shop (Extras)
- (void)close { }
@end

static double helper(double x) {
    return x * SHOP_LIMIT;
}
