{ Symbols by patterns: no grammar of Pascal is installed. }
unit Shop.Store;

interface

uses SysUtils;

const
  Limit = 10;

type
  TKind = (Fruit, Bread);
  TItem = packed record
    Price: Integer;
  end;
  IPriced = interface
    function Price(const Name: string): Integer;
  end;
  TStore<T> = class(TObject, IPriced)
  private
    FName: string;
  public
    constructor Create(const AName: string);
    class function New: IPriced; static;
    property Name: string read FName;
  end;
  TPrices = array of Integer;

implementation

constructor TStore<T>.Create(const AName: string);
begin
  FName := AName;
end;

{ What a thing costs. }
function TStore<T>.Price(const Name: string): Integer;
begin
  Result := Helper(Name);
end;

end.
