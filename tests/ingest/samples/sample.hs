{-# LANGUAGE GADTs #-}
module Data.Store (Store(..), read') where

import qualified Data.Map as M
import Data.List (sortBy, nub)

-- | Keeps things.
data Store a = Empty | Node { left :: Store a, value :: a } deriving (Show, Eq)
newtype Key = Key { unKey :: String }
type Handler = Int -> IO ()

class Eq a => Named a where
  name :: a -> String
  name _ = "none"

instance Named Key where
  name (Key k) = k

limit :: Int
limit = 10

-- | Reads one.
read' :: Ord k => k -> M.Map k v -> Maybe v
read' k m = M.lookup k (helper m)
  where local = 1

helper m | null m = m
         | otherwise = m

(<+>) :: Int -> Int -> Int
a <+> b = a + b
