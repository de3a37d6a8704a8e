--  Symbols by patterns: no grammar of Ada is installed.
with Ada.Text_IO;

package body Shop.Store is

   type Kind is (Fruit, Bread);

   type Item is record
      Name  : String (1 .. 10);
      Price : Natural := 0;
   end record;

   Limit : constant Natural := 10;
   Sold_Out : exception;

   --  What a thing costs, in cents.
   function Price (Name : String) return Natural is
      Found : Natural := 0;
   begin
      --  procedure Commented is
      return Lookup (Name) + Found;
   end Price;

   overriding procedure Add (Self : in out Store; Name : String) is
   begin
      Ada.Text_IO.Put_Line ("procedure Quoted");
   end Add;

   function "+" (Left, Right : Item) return Item is (Left);

   protected body Counter is
      entry Wait when Ready is
      begin
         null;
      end Wait;
   end Counter;

   task type Worker;
end Shop.Store;
